# fish completes the command line of lair; lair itself knows what may come next.
function __lair_words
    set -l typed (commandline -opc)
    for line in ($typed[1] words -- $typed[2..-1] (commandline -ct) 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c lair -f -a '(__lair_words)'
