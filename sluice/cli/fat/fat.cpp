// sluice fat: works with FAT volumes in images, without root and without mounting.

#include "sluice/cli/commands.hpp"
#include "sluice/cli/fat/commands.hpp"

namespace sluice::cli {

void add_fat(command_syntax app) {
    const command_syntax fat = app.add_subcommand("fat", "work with FAT disk images")
                                   .group("Tools")
                                   .example("sluice fat mkfs --size 64m --label FIRMWARE disk.img")
                                   .example("sluice fat put build/boot disk.img:/")
                                   .example("sluice fat get card.img@2:/DCIM/100/IMG_0001.JPG")
                                   .further_status("4 volume damaged");
    fat.require_subcommands(1);
    add_fat_mkfs(fat);
    add_fat_build(fat);
    add_fat_inspect(fat);
    add_fat_get(fat);
    add_fat_put(fat);
    add_fat_mkfile(fat);
    add_fat_modify(fat);
    add_fat_check(fat);
    add_fat_undo(fat);
    add_fat_overlay(fat);
}

}  // namespace sluice::cli
