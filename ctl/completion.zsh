_ringnfsctl() {
	local _ringnfsctl_kind _ringnfsctl_found _ringnfsctl_socket
	_ringnfsctl_look "${(@)words[2,CURRENT-1]}"
	if [[ ${words[CURRENT]} != -* ]]; then
		case $_ringnfsctl_kind in
		FILE | PATH) _files ;;
		?*) compadd -- $(_ringnfsctl_words "$_ringnfsctl_kind") ;;
		esac
	fi
	[[ -z $_ringnfsctl_kind || ${words[CURRENT]} == -* ]] && compadd -- ${=_ringnfsctl_found}
}
_ringnfsctl "$@"
