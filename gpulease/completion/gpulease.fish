# fish completion for gpulease.  The program itself says what can come next (cli/completion.h).

# Prints the numbers that --status --json has as MEMBER: ids of jobs, indices of GPUs.
function __gpulease_numbers
    $argv[1] --status --json 2>/dev/null |
        string replace -rf '^ *"'$argv[2]'": ([0-9]+),*$' '$1' | sort -nu
end

function __gpulease_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # fish completes the whole of --name=TEXT
    set -l option (string match -r -- '^--[^=]*=' $current)
    set -l value (string replace -- "$option" '' "$current")

    for line in ($words[1] --complete -- $words[2..] "$current" 2>/dev/null)
        switch $line
            case '@command *'
                set -l at (math (string replace '@command ' '' $line) + 2)
                set -l rest (string escape -- $words[$at..])
                complete -C (string join ' ' -- $rest "$current")
            case @jobs
                printf "$option%s\n" (__gpulease_numbers $words[1] ticket)
            case @gpus
                printf "$option%s\n" (__gpulease_numbers $words[1] index)
            case @files
                printf "$option%s\n" (complete -C "'' $value")
            case @folders
                printf "$option%s\n" (__fish_complete_directories "$value")
            case @users
                printf "$option%s\n" (__fish_complete_users)
            case @signals
                printf "$option%s\n" (kill -l | string split -n ' ')
            case '*'
                echo -- "$option$line"
        end
    end
end

complete -c gpulease -f -a '(__gpulease_complete)'
