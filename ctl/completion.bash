_ringnfsctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} _ringnfsctl_kind _ringnfsctl_found _ringnfsctl_socket
	COMPREPLY=()
	[[ $cur == = ]] && cur=
	_ringnfsctl_look "${COMP_WORDS[@]:1:COMP_CWORD-1}"
	if [[ $cur != -* && -n $_ringnfsctl_kind ]]; then
		case $_ringnfsctl_kind in
		FILE | PATH) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "$(_ringnfsctl_words "$_ringnfsctl_kind")" -- "$cur") ;;
		esac
		[[ -n $cur || ${#COMPREPLY[@]} -gt 0 ]] && return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$_ringnfsctl_found" -- "$cur")
}
complete -F _ringnfsctl ringnfsctl
