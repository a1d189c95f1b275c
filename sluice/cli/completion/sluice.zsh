#compdef sluice
# Completion of sluice for zsh. `sluice completion zsh` prints this script.
# The program itself knows its options; the script only asks it.

_sluice() {
    local line also=':none' before=''
    local -a lines candidates open_ended
    lines=("${(@f)$(_call_program candidates ${(q)words[1]} complete ${(q)${(Q)words[2,CURRENT-1]}} ${(q)${(Q)PREFIX}})}")
    for line in $lines; do
        case $line in
            :*) also=${line%% *}; before=${${line#$also}# } ;;
            *)
                local word=${line%%$'\t'*} what=${line#*$'\t'}
                word=${word//:/\\:}
                if [[ $word == */ ]]; then
                    open_ended+=($word${what:+:$what})
                else
                    candidates+=($word${what:+:$what})
                fi
                ;;
        esac
    done
    local ret=1
    (( ! $#candidates )) || _describe 'argument' candidates && ret=0
    (( ! $#open_ended )) || _describe 'argument' open_ended -S '' && ret=0
    [[ -z $before ]] || compset -P "${(b)before}"
    case $also in
        :files) _files && ret=0 ;;
        :directories) _files -/ && ret=0 ;;
        :commands) _command_names -e && ret=0 ;;
    esac
    return ret
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _sluice "$@"
else
    compdef _sluice sluice
fi
