# Files in their places: put.sh check|run, then for each the file beside this one, its place and its rights.

. "$TPU_SETUP/lib.sh"
what=$1
shift
while [ $# -gt 2 ]; do
    if [ "$what" = check ]; then
        is_put "$TPU_SETUP/$1" "$(whole_path "$2")" "$3" || exit
    else
        put_file "$TPU_SETUP/$1" "$(whole_path "$2")" "$3" || exit
    fi
    shift 3
done
