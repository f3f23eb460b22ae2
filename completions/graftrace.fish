# SPDX-License-Identifier: MIT
#
# fish completion for graftrace. Commands and options are asked of the program itself.

function __graftrace_commands
    graftrace help 2>/dev/null | string match -rg '^  ([a-z][a-z-]*) '
end

function __graftrace_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and echo $words[2]
end

# Of the recording, for the commands that look at one; of the program on the line for the others.
function __graftrace_functions
    switch (__graftrace_command)
        case record profile top mount
            for word in (commandline -opc)[3..]
                if not string match -q -- '-*' $word; and type -fq $word
                    graftrace functions -F csv $word 2>/dev/null | string match -rg '^[^,]*,([^,"]+),[^,]*,[^,]*,(?:graph|entry)'
                end
            end
        case '*'
            graftrace report --format csv --limit 2000 2>/dev/null | tail -n +2 | string match -rg '^"?([^",]*)'
    end
end

function __graftrace_threads
    graftrace report --by thread --format csv 2>/dev/null | tail -n +2 | string match -rg '^[^,]*-(\d+),'
end

# Control files of the process of -P on the line, else of the only one that is recorded.
function __graftrace_control
    set -l process (commandline -opc | string join ' ' | string match -rg ' (?:-P|--pid) (\d+)')
    test -z "$process"; or set process -P $process
    graftrace get $process 2>/dev/null
end

complete -c graftrace -n '__fish_is_nth_token 1' -f -a '(__graftrace_commands) help'
for command in (__graftrace_commands)
    for option in (graftrace $command --help 2>/dev/null | string match -arg '(?:^|[ ,[])--([a-zA-Z][a-z0-9-]*)' | sort -u)
        complete -c graftrace -n "test (__graftrace_command) = $command" -l $option
    end
end
for option in l/filter n/notrace g/graph N/graph-notrace A/argument R/return
    set -l names (string split / $option)
    complete -c graftrace -s $names[1] -l $names[2] -x -a '(__graftrace_functions)'
end
for option in callers callees hist
    complete -c graftrace -l $option -x -a '(__graftrace_functions)'
end
complete -c graftrace -s P -l pid -x -a '(__fish_complete_pids)'
complete -c graftrace -l tid -x -a '(__graftrace_threads)'
complete -c graftrace -n 'contains -- (__graftrace_command) get set' -f -a '(__graftrace_control)'
complete -c graftrace -n 'test (__graftrace_command) = graph' -f -a '(__graftrace_functions)'
complete -c graftrace -n 'contains -- (__graftrace_command) record profile' -a '(__fish_complete_command)'
