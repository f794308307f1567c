# SPDX-License-Identifier: BSD-2-Clause
#
# Makes the completion of ringnfsctl for a shell (-v shell=bash or zsh) out of ringnfsctl(8): each entry ".It Cm" of its list of
# commands is a command with its options and arguments. A command that has a manual entry, as each must, needs nothing else.
#
# Both shells get the same tables, keyed by the command's words: subcommands, options, kinds of options' values and of arguments.

function add(list, key, word) {
	if (index(" " list[key] " ", " " word " ") == 0)
		list[key] = list[key] (list[key] == "" ? "" : " ") word
}

# Kind of a value: files and levels and the like can be completed.
function kind(value) {
	return value ~ /^(FILE|PATH|LEVEL|MODULE|ID|CLIENT|COMMAND)$/ ? value : "-"
}

/^The commands are:/ { in_list = 1 }
/^\.Sh/ { in_list = 0 }

in_list && /^\.It Cm/ {
	command = $3
	i = 4
	if (i <= NF && $i ~ /^[a-z]+$/) {
		add(subs, command, $i)
		command = command " " $i
		i++
	}
	if (!(command in seen))
		order[++n] = command
	seen[command] = 1
	for (; i <= NF; i++) {
		if ($i == "Fl") {
			option = "-" $(++i)
			add(options, command, option)
			if ($(i + 1) == "Ar") {
				value = kind($(i + 2))
				i += 2
				# Alternatives, as in ID|ADDRESS.
				while ($(i + 1) == "Ns" && $(i + 2) == "|" && $(i + 4) == "Ar") {
					if (kind($(i + 5)) != "-")
						value = kind($(i + 5))
					i += 5
				}
				values[command " " option] = value
			}
		} else if ($i ~ /^[A-Z]+$/ && $(i - 3) != "|") { # no further one of alternatives
			arguments[command] = arguments[command] (arguments[command] == "" ? "" : " ") kind($i)
		}
	}
}

function put_case(list, name, key,   k) {
	print "\tcase \"$" name "\" in"
	for (k = 1; k <= n_keys; k++)
		if (keys[k] in list)
			print "\t'" keys[k] "') printf '%s\\n' '" list[keys[k]] "' ;;"
	print "\tesac"
}

function keys_of(list,   k) {
	n_keys = 0
	for (k in list)
		keys[++n_keys] = k
	sort_keys()
}

function sort_keys(   i, j, t) {
	for (i = 2; i <= n_keys; i++)
		for (j = i; j > 1 && keys[j] < keys[j - 1]; j--) {
			t = keys[j]
			keys[j] = keys[j - 1]
			keys[j - 1] = t
		}
}

function put_table(name, list) {
	keys_of(list)
	print name "() {"
	put_case(list, "1")
	print "}\n"
}

END {
	for (i = 1; i <= n; i++) {
		split(order[i], word, " ")
		add(all, "all", word[1])
	}
	if (shell == "zsh")
		print "#compdef ringnfsctl"
	print "# SPDX-License-Identifier: BSD-2-Clause"
	print "# Completion of ringnfsctl(8); made out of that page.\n"
	print "_ringnfsctl_commands='" all["all"] "'\n"
	put_table("_ringnfsctl_subcommands", subs)
	put_table("_ringnfsctl_options", options)
	put_table("_ringnfsctl_values", values)
	put_table("_ringnfsctl_arguments", arguments)
}
