#include <gmock/gmock.h>

#include "sluice/vfs/volume_testing.hpp"

// The contract of find, create, rename, link, remove and list, for every kind of volume.

namespace sluice::vfs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class volume_names : public volume_test {};
SLUICE_TEST_EVERY_VOLUME(volume_names);

TEST_P(volume_names, the_root_is_the_empty_path) {
    const auto root = at("");
    EXPECT_EQ(root->kind(), node_kind::directory);
    EXPECT_EQ(root->path(), "");
    EXPECT_EQ(code(on().create("", {})), EEXIST);
    EXPECT_EQ(code(root->names()->remove()), EBUSY);
    EXPECT_EQ(code(root->names()->rename("other", when_taken::refuse)), EBUSY);
}

TEST_P(volume_names, a_node_knows_its_directory_and_its_name_there) {
    make_directory("d");
    make_directory("other");
    const auto file = make_file("d/Name");
    const auto before = file->names()->place();
    ASSERT_TRUE(before) << before.error().message();
    EXPECT_EQ(before->directory, at("d")->key());
    EXPECT_EQ(before->name, "Name");
    EXPECT_EQ(before->identity.key, file->key());
    ASSERT_EQ(code(file->names()->rename("other/New", when_taken::refuse)), 0);
    const auto after = file->names()->place();
    ASSERT_TRUE(after) << after.error().message();
    EXPECT_EQ(after->directory, at("other")->key());
    EXPECT_EQ(after->name, "New");
    EXPECT_EQ(code(at("")->names()->place()), EBUSY);
    ASSERT_EQ(code(file->names()->remove()), 0);
    EXPECT_EQ(code(file->names()->place()), ENOENT);
}

TEST_P(volume_names, a_directory_shows_what_a_name_stands_for_now) {
    make_directory("d");
    const auto file = make_file("d/Name");
    const auto directory = at("d");
    const auto shown = directory->children()->identity_of("Name");
    ASSERT_TRUE(shown) << shown.error().message();
    EXPECT_EQ(*shown, file->names()->place()->identity);
    ASSERT_EQ(code(file->names()->remove()), 0);
    EXPECT_EQ(code(directory->children()->identity_of("Name")), ENOENT);
    EXPECT_NE(make_file("d/Name")->key(), shown->key);
    EXPECT_NE(directory->children()->identity_of("Name")->key, shown->key);
}

TEST_P(volume_names, created_files_are_found_in_any_case) {
    make_directory("Docs");
    const auto made = make_file("Docs/Grüße.txt", "hello");
    EXPECT_EQ(made->path(), "Docs/Grüße.txt");
    for (const char* path : {"Docs/Grüße.txt", "docs/grüße.TXT", "DOCS/GRÜßE.TXT"}) {
        const auto found = at(path);
        EXPECT_EQ(found->key(), made->key()) << path;
        EXPECT_EQ(found->path(), "Docs/Grüße.txt") << path;
    }
    EXPECT_EQ(content("DOCS/grüße.txt"), "hello");
}

TEST_P(volume_names, a_missing_file_and_a_missing_directory_have_different_errors) {
    make_file("file");
    EXPECT_EQ(code(find("nothing")), ENOENT);
    EXPECT_EQ(code(find("nothing/below")), ENOTDIR);
    EXPECT_EQ(code(find("file/below")), ENOTDIR);
    EXPECT_EQ(code(find("FILE/below")), ENOTDIR);
    EXPECT_EQ(code(on().create("nothing/below", {})), ENOTDIR);
}

TEST_P(volume_names, a_name_that_exists_in_another_case_cannot_be_created) {
    make_file("Name");
    EXPECT_EQ(code(on().create("Name", {})), EEXIST);
    EXPECT_EQ(code(on().create("nAME", {})), EEXIST);
    EXPECT_EQ(code(on().create("NAME", {.kind = node_kind::directory})), EEXIST);
    EXPECT_THAT(names(""), ElementsAre("Name"));
}

TEST_P(volume_names, files_are_created_in_a_found_directory) {
    make_directory("d");
    make_file("f");
    EXPECT_EQ(code(on().find_directory("f")), ENOTDIR);
    EXPECT_EQ(code(on().find_directory("missing")), ENOENT);
    for (const std::string_view path : {"", "D"}) {
        auto directory = on().find_directory(path);
        ASSERT_EQ(code(directory), 0) << path;
        EXPECT_EQ(directory->status.kind, node_kind::directory);
        const auto file = on().create_in(*directory->node, "new", {});
        ASSERT_EQ(code(file), 0) << path;
        EXPECT_EQ(file->status.kind, node_kind::file);
        EXPECT_EQ(file->status.id, file->node->status().value().id);
        EXPECT_EQ(code(on().create_in(*directory->node, "NEW", {})), EEXIST);
        for (const std::string_view none : {"d/new2", "..", "."})
            EXPECT_EQ(code(on().create_in(*directory->node, none, {})), EILSEQ) << none;
        const auto below = on().create_in(*directory->node, "below", {.kind = node_kind::directory});
        ASSERT_EQ(code(below), 0) << path;
        EXPECT_EQ(below->status.kind, node_kind::directory);
    }
    EXPECT_EQ(at("d/new")->path(), "d/new");
    EXPECT_EQ(at("below")->kind(), node_kind::directory);
}

TEST_P(volume_names, a_file_with_a_long_name_has_a_short_one_that_finds_it) {
    make_directory("d");
    make_file("d/A long name.text", "long");
    make_file("d/SHORT.TXT");
    const auto file = at("d/A long name.text");
    const auto given = file->names()->alternate_name();
    ASSERT_EQ(code(given), 0);
    EXPECT_TRUE(at("d/SHORT.TXT")->names()->alternate_name().value().empty());
    EXPECT_TRUE(at("")->names()->alternate_name().value().empty());
    if (not on().features().has_short_names) {
        EXPECT_TRUE(given->empty());
        EXPECT_EQ(code(file->names()->set_alternate_name(short_name("OTHER"))), EOPNOTSUPP);
        return;
    }
    EXPECT_EQ(given->view(), "ALONGN~1.TEX");
    EXPECT_EQ(at("d/ALONGN~1.TEX")->key(), file->key());
    EXPECT_EQ(at("D/alongn~1.tex")->path(), "d/A long name.text");
    EXPECT_EQ(code(on().create("d/alongn~1.tex", {})), EEXIST);
    std::vector<std::string> shown;
    const auto listing = at("d")->children()->list().value();
    for (const listed_name* each = listing->next().value(); each != nullptr; each = listing->next().value())
        shown.push_back(std::string(each->name) + " " + std::string(listing->alternate_name().view()));
    EXPECT_THAT(shown, UnorderedElementsAre("A long name.text ALONGN~1.TEX", "SHORT.TXT "));
}

TEST_P(volume_names, a_new_name_has_a_new_short_one) {
    SLUICE_NEEDS(has_short_names);
    const auto file = make_file("A long name.text");
    ASSERT_EQ(code(file->names()->rename("Another long name", when_taken::refuse)), 0);
    EXPECT_EQ(file->names()->alternate_name().value().view(), "ANOTHE~1");
    EXPECT_EQ(code(find("ALONGN~1.TEX")), ENOENT);
    ASSERT_EQ(code(file->names()->remove()), 0);
    EXPECT_EQ(code(find("ANOTHE~1")), ENOENT);
}

TEST_P(volume_names, invalid_paths_are_rejected) {
    for (const std::string_view path : {"/",
                                        "/a",
                                        "a/",
                                        "a//b",
                                        ".",
                                        "..",
                                        "a/..",
                                        "../a",
                                        "a/./b",
                                        "a:b",
                                        "a*",
                                        "a?",
                                        "a\\b",
                                        "a|b",
                                        "a<b",
                                        "a>b",
                                        "a\"b",
                                        "a\x01",
                                        "\xff",
                                        "\xed\xa0\xbd\xed\xb8\x80",
                                        "\xef\x80\xa9",
                                        "\xef\x80\xa9\xef\x80\xa9",
                                        ".\xef\x80\xa9"}) {
        EXPECT_EQ(code(find(path)), EILSEQ) << path;
        EXPECT_EQ(code(on().create(path, {})), EILSEQ) << path;
    }
    EXPECT_EQ(code(find(std::string_view("a\0b", 3))), EILSEQ);
    EXPECT_EQ(code(find(std::string(256, 'n'))), ENAMETOOLONG);
    EXPECT_EQ(code(on().create(std::string(5000, 'n'), {})), ENAMETOOLONG);
}

TEST_P(volume_names, a_lone_surrogate_is_a_valid_name) {
    make_file("a\xed\xa0\xbd");
    EXPECT_EQ(code(find("A\xed\xa0\xbd")), 0);
    EXPECT_THAT(names(""), ElementsAre("a\xed\xa0\xbd"));
}

TEST_P(volume_names, a_listing_returns_each_name_once_with_its_status) {
    make_directory("d");
    make_file("f", "12345");
    const auto listed = list("");
    ASSERT_EQ(listed.size(), 2U);
    EXPECT_EQ(listed.at("d").kind, node_kind::directory);
    EXPECT_EQ(listed.at("f").kind, node_kind::file);
    EXPECT_EQ(listed.at("f").size_bytes, 5U);
    EXPECT_EQ(listed.at("f").id, at("f")->key().file);
    EXPECT_EQ(code(vfs::list(*at("f"))), ENOTDIR);
}

TEST_P(volume_names, a_listing_of_many_names_is_complete) {
    for (int i = 0; i < 1000; ++i)
        make_file("name " + std::to_string(i));
    EXPECT_EQ(list("").size(), 1000U);
}

TEST_P(volume_names, rename_moves_a_file_and_the_node_follows) {
    make_directory("From");
    make_directory("To");
    const auto moved = make_file("From/name", "content");
    ASSERT_EQ(code(moved->names()->rename("TO/Other", when_taken::refuse)), 0);
    EXPECT_EQ(moved->path(), "To/Other");
    EXPECT_THAT(names("From"), IsEmpty());
    EXPECT_EQ(content("to/other"), "content");
}

TEST_P(volume_names, rename_may_change_only_the_case) {
    const auto named = make_file("readme.TXT");
    ASSERT_EQ(code(named->names()->rename("README.txt", when_taken::refuse)), 0);
    EXPECT_THAT(names(""), ElementsAre("README.txt"));
    EXPECT_EQ(named->path(), "README.txt");
    EXPECT_EQ(code(named->names()->rename("README.txt", when_taken::refuse)), 0) << "to its own name";
}

TEST_P(volume_names, rename_rejects_or_replaces_an_existing_name_in_any_case) {
    const auto moved = make_file("new", "new content");
    const auto old = make_file("Old", "old content");
    EXPECT_EQ(code(moved->names()->rename("OLD", when_taken::refuse)), EEXIST);
    EXPECT_EQ(code(moved->names()->rename("Old", when_taken::refuse)), EEXIST);
    ASSERT_EQ(code(moved->names()->rename("OLD", when_taken::replace)), 0);
    EXPECT_THAT(names(""), ElementsAre("OLD"));
    EXPECT_EQ(content("old"), "new content");
    ASSERT_EQ(code(old->data()->open_data(reads)), 0);
    EXPECT_EQ(read(*old).value(), "old content") << "the replaced file exists while it is open";
}

TEST_P(volume_names, rename_of_a_directory_moves_its_contents) {
    const auto directory = make_directory("a");
    const auto below = make_file("a/f");
    make_directory("b");
    ASSERT_EQ(code(directory->names()->rename("b/c", when_taken::refuse)), 0);
    EXPECT_EQ(below->path(), "b/c/f");
    EXPECT_EQ(directory->path(), "b/c");
    EXPECT_EQ(code(at("b")->names()->rename("b/c/d", when_taken::refuse)), EINVAL) << "into itself";
    EXPECT_EQ(code(find("a")), ENOENT);
}

TEST_P(volume_names, rename_does_not_mix_files_and_directories) {
    const auto file = make_file("file");
    const auto directory = make_directory("directory");
    make_file("directory/f");
    make_directory("other");
    EXPECT_EQ(code(file->names()->rename("directory", when_taken::replace)), EISDIR);
    EXPECT_EQ(code(directory->names()->rename("file", when_taken::replace)), ENOTDIR);
    EXPECT_EQ(code(at("other")->names()->rename("directory", when_taken::replace)), ENOTEMPTY);
    EXPECT_EQ(code(file->names()->rename("nowhere/f", when_taken::replace)), ENOTDIR);
}

TEST_P(volume_names, a_removed_file_is_usable_while_it_is_open) {
    const auto held = make_file("f", "still here");
    ASSERT_EQ(code(held->names()->remove()), 0);
    EXPECT_EQ(code(find("f")), ENOENT);
    EXPECT_EQ(read(*held).value(), "still here");
    EXPECT_EQ(held->status().value().links, 0U);
    EXPECT_EQ(held->path(), "f") << "the last known path";
    EXPECT_EQ(code(held->names()->remove()), ENOENT);
    const auto again = make_file("f");
    EXPECT_NE(again->key(), held->key());
}

TEST_P(volume_names, only_empty_directories_are_removed) {
    const auto directory = make_directory("d");
    const auto file = make_file("d/f");
    EXPECT_EQ(code(directory->names()->remove()), ENOTEMPTY);
    EXPECT_EQ(code(file->names()->remove()), 0);
    EXPECT_EQ(code(directory->names()->remove()), 0);
    EXPECT_THAT(names(""), IsEmpty());
}

TEST_P(volume_names, a_hard_link_is_an_additional_name_of_the_same_file) {
    SLUICE_NEEDS(has_hard_links);
    const auto first = make_file("first", "shared");
    ASSERT_EQ(code(first->names()->link("second", when_taken::refuse)), 0);
    EXPECT_EQ(at("second")->key(), first->key());
    EXPECT_EQ(first->status().value().links, 2U);
    make_file("third");
    EXPECT_EQ(code(first->names()->link("THIRD", when_taken::refuse)), EEXIST);
    EXPECT_EQ(code(first->names()->link("THIRD", when_taken::replace)), 0);
    EXPECT_EQ(at("third")->key(), first->key());
    EXPECT_EQ(code(make_directory("d")->names()->link("e", when_taken::refuse)), EPERM);
    ASSERT_EQ(code(at("second")->names()->remove()), 0);
    EXPECT_EQ(content("first"), "shared");
}

TEST_P(volume_names, renaming_one_name_of_a_file_over_another_leaves_one) {
    SLUICE_NEEDS(has_hard_links);
    const auto first = make_file("first", "shared");
    ASSERT_EQ(code(first->names()->link("second", when_taken::refuse)), 0);
    EXPECT_EQ(code(first->names()->rename("second", when_taken::refuse)), EEXIST);
    ASSERT_EQ(code(first->names()->rename("second", when_taken::replace)), 0);
    EXPECT_THAT(names(""), ElementsAre("second"));
    EXPECT_EQ(first->path(), "second");
}

TEST_P(volume_names, links_are_followed_as_long_as_they_stay_inside) {
    SLUICE_NEEDS(has_symlinks);
    make_directory("d");
    make_file("d/f", "behind a link");
    make_link("to file", "d/f");
    make_link("to directory", "d");
    make_link("d/up", "../d/f");
    EXPECT_EQ(content("to file"), "behind a link");
    EXPECT_EQ(content("to directory/f"), "behind a link");
    EXPECT_EQ(content("TO DIRECTORY/F"), "behind a link");
    EXPECT_EQ(content("d/up"), "behind a link");
    const auto itself = at("to file", follow_links::no);
    EXPECT_EQ(itself->kind(), node_kind::symlink);
    EXPECT_EQ(itself->attached()->read_link().value(), "d/f");
    EXPECT_EQ(code(at("d")->attached()->read_link()), EINVAL);
}

TEST_P(volume_names, links_that_lead_outside_or_in_a_circle_are_not_followed) {
    SLUICE_NEEDS(has_symlinks);
    make_link("absolute", "/etc/passwd");
    make_link("up", "../../../../../../etc/passwd");
    make_link("self", "self");
    make_link("nowhere", "missing");
    EXPECT_EQ(code(find("absolute")), EXDEV);
    EXPECT_EQ(code(find("up")), EXDEV);
    EXPECT_EQ(code(find("self")), ELOOP);
    EXPECT_EQ(code(find("nowhere")), ENOLINK);
    EXPECT_EQ(code(find("absolute", follow_links::no)), 0);
    EXPECT_EQ(code(on().create("NoWhere", {})), EEXIST);
}

TEST_P(volume_names, a_link_whose_target_is_missing_differs_from_a_missing_name) {
    SLUICE_NEEDS(has_symlinks);
    make_directory("d");
    make_link("d/link", "missing");
    make_link("d/deep", "missing/name");
    make_link("chain", "d/link");
    for (const char* link : {"d/link", "D/Link", "d/deep", "chain"}) {
        EXPECT_EQ(code(find(link)), ENOLINK) << link;
        EXPECT_EQ(code(find(link, follow_links::no)), 0) << link;
    }
    EXPECT_EQ(code(find("d/link/name")), ENOTDIR);
    EXPECT_EQ(code(find("d/missing")), ENOENT);
    EXPECT_EQ(code(on().create("d/link/name", {})), ENOTDIR);
}

TEST_P(volume_names, a_listing_contains_the_targets_of_links) {
    SLUICE_NEEDS(has_symlinks);
    make_file("target", "12345");
    make_link("good", "target");
    make_link("bad", "/etc");
    const auto root = at("");
    auto listing = root->children()->list().value();
    int seen = 0;
    while (const listed_name* next = listing->next().value()) {
        if (next->name == "good") {
            EXPECT_FALSE(next->leads_nowhere);
            EXPECT_EQ(next->status.size_bytes, 5U);
            EXPECT_EQ(next->status.kind, node_kind::file);
            ++seen;
        } else if (next->name == "bad") {
            EXPECT_TRUE(next->leads_nowhere);
            EXPECT_EQ(next->status.kind, node_kind::symlink);
            ++seen;
        }
    }
    EXPECT_EQ(seen, 2);
}

TEST_P(volume_names, an_empty_directory_or_file_becomes_a_link_and_a_file_again) {
    SLUICE_NEEDS(has_symlinks);
    make_file("target", "x");
    const auto directory = make_directory("d");
    ASSERT_EQ(code(directory->attached()->become_link("target")), 0);
    EXPECT_EQ(directory->kind(), node_kind::symlink);
    EXPECT_EQ(content("d"), "x");
    ASSERT_EQ(code(directory->attached()->become_link("")), 0);
    EXPECT_EQ(directory->kind(), node_kind::file);
    EXPECT_EQ(content("d"), "");
    EXPECT_EQ(code(at("target")->attached()->become_link("d")), ENOTEMPTY);
    const auto full = make_directory("full");
    make_file("full/f");
    EXPECT_EQ(code(full->attached()->become_link("target")), ENOTEMPTY);
}

TEST_P(volume_names, a_file_that_has_a_second_name_does_not_become_a_link) {
    SLUICE_NEEDS(has_symlinks);
    const auto file = make_file("f");
    ASSERT_EQ(code(file->names()->link("g", when_taken::refuse)), 0);
    ASSERT_EQ(code(file->data()->open_data(writes)), 0);
    EXPECT_EQ(code(file->attached()->become_link("target")), EMLINK);
    EXPECT_EQ(file->kind(), node_kind::file);
    ASSERT_EQ(code(at("g")->names()->remove()), 0);
    EXPECT_EQ(code(file->attached()->become_link("target")), 0);
    EXPECT_EQ(code(write(*file, "x")), EBADF) << "the open data no longer exist";
}

TEST_P(volume_names, a_node_has_the_parts_of_its_kind) {
    const auto file = make_file("f");
    EXPECT_NE(file->data(), nullptr);
    EXPECT_NE(file->names(), nullptr);
    EXPECT_EQ(file->children(), nullptr);
    const auto directory = make_directory("d");
    EXPECT_EQ(directory->data(), nullptr);
    EXPECT_EQ(code(data_of(*directory)), EBADF);
    EXPECT_NE(directory->names(), nullptr);
    EXPECT_NE(directory->children(), nullptr);
    EXPECT_EQ(code(io::sync_wait(*multiplexer_, directory->co_flush())), 0);
    if (not on().features().has_streams and not on().features().has_symlinks) {
        EXPECT_EQ(file->attached(), nullptr);
        EXPECT_EQ(code(open_stream(*file, {.name = "s", .create = true})), EOPNOTSUPP);
    }
    if (not on().features().has_streams) return;
    const auto stream = open_stream(*file, {.name = "s", .create = true}).value();
    EXPECT_NE(stream->data(), nullptr);
    EXPECT_EQ(stream->children(), nullptr);
    EXPECT_EQ(code(stream->names()->link("g", when_taken::refuse)), EOPNOTSUPP);
    EXPECT_EQ(code(open_stream(*stream, {.name = "t", .create = true})), EOPNOTSUPP);
    EXPECT_EQ(code(stream->attached()->become_link("target")), EOPNOTSUPP);
}

TEST_P(volume_names, a_node_that_becomes_a_link_keeps_its_parts_but_they_fail) {
    SLUICE_NEEDS(has_symlinks);
    const auto file = make_file("f");
    node_data* const data = file->data();
    ASSERT_EQ(code(file->attached()->become_link("target")), 0);
    EXPECT_EQ(file->data(), data);
    EXPECT_EQ(code(data->open_data(reads)), ENXIO);
    const auto directory = make_directory("d");
    ASSERT_EQ(code(directory->attached()->become_link("target")), 0);
    EXPECT_EQ(code(vfs::list(*directory)), ENOTDIR);
    const auto link = at("f", follow_links::no);
    EXPECT_EQ(link->data(), nullptr);
    EXPECT_EQ(code(open_data(*link, reads)), ENXIO);
}

}  // namespace
}  // namespace sluice::vfs
