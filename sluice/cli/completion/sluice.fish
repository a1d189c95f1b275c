# Completion of sluice for fish. `sluice completion fish` prints this script.
# The program itself knows its options; the script only asks it.

function __sluice_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in ($program complete $words $current 2>/dev/null)
        set -l also (string match -r -g '^(:[a-z]+) ?' -- $line)
        set -l before (string replace -r '^:[a-z]+ ?' '' -- $line)
        switch "$also"
            case ''
                printf '%s\n' $line
            case ':files'
                __fish_complete_path (string replace -- "$before" '' $current) | string replace -r '^' -- $before
            case ':directories'
                __fish_complete_directories (string replace -- "$before" '' $current) '' | string replace -r '^' -- $before
            case ':commands'
                __fish_complete_command
        end
    end
end

complete -c sluice -f -a '(__sluice_complete)'
