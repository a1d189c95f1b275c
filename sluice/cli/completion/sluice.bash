# Completion of sluice for bash. `sluice completion bash` prints this script.
# The program itself knows its options; the script only asks it.

_sluice() {
    local program=${1/#\~/$HOME} line=$COMP_LINE word='' part='' also='' index=0
    local -a words=()
    # bash splits words at the characters of COMP_WORDBREAKS, as in --config=FILE; this joins them again.
    while ((index <= COMP_CWORD)); do
        if [[ $line == [[:space:]]* || $index == 0 ]]; then
            ((index == 0)) || words+=("$word")
            word=''
            line=${line#"${line%%[![:space:]]*}"}
        fi
        part=${COMP_WORDS[index]}
        word+=$part
        line=${line#"$part"}
        ((++index))
    done
    words=("${words[@]:1}" "$word")
    # What bash replaces is what follows the last of those characters.
    local replaced=${COMP_WORDS[COMP_CWORD]}
    [[ $replaced != [=:] ]] || replaced=''
    local kept=${word%"$replaced"}
    COMPREPLY=()
    while IFS=$'\t' read -r part _; do
        case $part in
            :*) also=${part%% *} ;;
            *) COMPREPLY+=("${part#"$kept"}") ;;
        esac
    done < <("$program" complete "${words[@]}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != */ ]] || compopt -o nospace
    case $also in
        :files) compopt -o bashdefault -o default ;;
        :directories) compopt -o dirnames ;;
        :commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$replaced") ;;
    esac
}

complete -F _sluice sluice
