#!/bin/sh
# ImageNet from the two tars of ILSVRC2012: a folder a class for training and for validation.
#
# usage: sh imagenet.sh PARTIAL SOURCE
#
# The tars are only read. A class is extracted aside, compared with what its own tar lists, and
# gets its place by a rename: what has its place is done, and an interrupted run goes on behind it.
# PARTIAL/notes/labels says `FILE CLASS` for each validation image.
umask 022
export LC_ALL=C
partial=$1 source=$2
set=$partial/set notes=$partial/notes new=$partial/new
# Not beside the set: on a full disk, why it failed must still be written somewhere.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
train=$source/ILSVRC2012_img_train.tar val=$source/ILSVRC2012_img_val.tar

refuse() { # CODE WORDS
    echo "dlperf problem $1 $2"
    exit 3
}

broken() { # TAR: why extracting it failed, in its own words
    why=$(sed '/^tar: Exiting with failure/d; /^tar: Child returned/d' "$work/why" | head -n 1)
    if grep -q 'No space left on device\|Disk quota exceeded' "$work/why"; then
        refuse DISK-FULL "$partial: ${why:-no space left}"
    fi
    refuse SOURCE-DAMAGED "$1: ${why:-it cannot be read}"
}

listed() { # files and bytes of a long listing with blocks; 'odd' where there is anything else
    awk '/^block [0-9]*: [*][*] Block of NULs/ { next }
        /^block [0-9]*: [*][*] End of File/ { next }
        { sub(/^block [0-9]*: /, "") }
        /^-/ { n++; bytes += $3; next }
        /^d/ && $NF == "./" { next }
        { odd = 1 }
        END {
            if (odd) print "odd"
            else printf "%d %.0f\n", n, bytes
        }' "$work/listed"
}

ended() { # TAR: cut between two members, it is a shorter one to tar, which only lists what it met
    tail -n 1 "$work/listed" | grep -q 'Block of NULs' ||
        refuse SOURCE-DAMAGED "$1 does not end as an archive ends; it was cut"
}

there() { # files and bytes in a folder; 'odd' where there is anything but files
    find "$1" -mindepth 1 -printf '%y %s\n' |
        awk '$1 != "f" { odd = 1 } { n++; bytes += $2 }
            END { if (odd) print "odd"; else printf "%d %.0f\n", n, bytes }'
}

checked() { # TAR: what was extracted is what the tar lists, and only files
    seen=$(there "$new") said=$(listed)
    case "$seen $said" in
    *odd*) refuse SOURCE-ODD "$1 holds more than image files" ;;
    "0 0 "*) refuse SOURCE-ODD "$1 holds no file" ;;
    esac
    [ "$seen" = "$said" ] || refuse SOURCE-DAMAGED "$1: $seen files and bytes; it lists $said"
}

exec 9>"$notes/lock"
flock -n 9 || refuse BUSY "another preparation works in $partial"
rm -rf "$new" "$partial/val.new"
now=$(stat -L -c '%n %s %y' "$train" "$val") || refuse SOURCE-DAMAGED "$source: a tar is gone"
if [ -f "$notes/source" ] && [ "$(cat "$notes/source")" != "$now" ]; then
    refuse SOURCE-CHANGED "$partial was begun from other tars; remove it to begin anew"
fi
printf '%s\n' "$now" >"$notes/source"

tar -tRf "$train" >"$work/listed" 2>"$work/why" || broken "$train"
ended "$train"
sed 's/^block [0-9]*: //; /^\*\* Block of NULs/d; /^\.\/$/d' "$work/listed" >"$work/members"
odd=$(grep -vxE '(\./)?n[0-9]{8}\.tar' "$work/members" | head -n 1)
[ -z "$odd" ] || refuse SOURCE-ODD "$train holds $odd; needed a tar for each class, n01440764.tar"
[ -s "$work/members" ] || refuse SOURCE-ODD "$train is empty"
twice=$(sort "$work/members" | uniq -d | head -n 1)
[ -z "$twice" ] || refuse SOURCE-ODD "$train holds $twice twice"
total=$(($(wc -l <"$work/members") + 1))
touch "$notes/manifest"
finished=0 files=0

keep() { # NAME: note what lies in $new, then give it its place
    printf '%s %s\n' "$1" "$seen" >>"$notes/manifest" || refuse DISK-FULL "$notes/manifest"
    files=$((files + ${seen% *}))
}

while read -r member; do
    class=${member#./} class=${class%.tar}
    if [ -d "$set/train/$class" ]; then
        known=$(awk -v name="train/$class" '$1 == name { n = $2 } END { print n + 0 }' \
            "$notes/manifest")
        files=$((files + known))
    else
        rm -rf "$new" && mkdir -p "$new" "$set/train" || refuse DISK-FULL "$partial: no new folder"
        rm -f "$work/failed"
        { tar -xOf "$train" --occurrence=1 "$member" || touch "$work/failed"; } 2>"$work/outer" |
            tar -xvvRf - -C "$new" --no-same-owner --no-same-permissions --numeric-owner \
                >"$work/listed" 2>"$work/why" || broken "$member of $train"
        if [ -e "$work/failed" ]; then
            mv "$work/outer" "$work/why"
            broken "$train"
        fi
        checked "$member of $train"
        keep "train/$class"
        mv "$new" "$set/train/$class" || refuse DISK-FULL "$set/train/$class cannot be made"
    fi
    finished=$((finished + 1))
    echo "dlperf progress $finished $total $files"
done <"$work/members"

if [ ! -d "$set/val" ]; then
    rm -rf "$new" && mkdir -p "$new" "$partial/val.new"
    tar -xvvRf "$val" -C "$new" --no-same-owner --no-same-permissions --numeric-owner \
        >"$work/listed" 2>"$work/why" || broken "$val"
    ended "$val"
    checked "$val"
    find "$new" -type f -printf '%f\n' | sort >"$work/images"
    cut -d ' ' -f 1 "$notes/labels" | sort >"$work/labelled"
    without=$(comm -23 "$work/images" "$work/labelled" | head -n 1)
    [ -z "$without" ] || refuse LABELS "no class is given for $without of $val"
    # One `mv` a class: fifty thousand take minutes.
    awk 'NR == FNR { there[$1] = 1; next }
        $1 in there { of[$2] = of[$2] " " $1 }
        END { for (class in of) print class of[class] }' \
        "$work/images" "$notes/labels" >"$work/moves"
    while read -r class images; do
        mkdir "$partial/val.new/$class" &&
            (cd "$new" && mv -- $images "$partial/val.new/$class/") ||
            refuse DISK-FULL "$partial/val.new/$class cannot be filled"
    done <"$work/moves"
    keep val
    mv "$partial/val.new" "$set/val" || refuse DISK-FULL "$set/val cannot be made"
    rmdir "$new"
else
    files=$((files + $(awk '$1 == "val" { n = $2 } END { print n + 0 }' "$notes/manifest")))
fi

# A machine that lost its power may have renamed folders whose files were never written.
find "$set" -type f -printf '%P %s\n' | awk '
    { split($1, step, "/"); name = step[1] == "val" ? "val" : step[1] "/" step[2] }
    { n[name]++; bytes[name] += $2 }
    END { for (name in n) printf "%s %d %.0f\n", name, n[name], bytes[name] }' |
    sort >"$work/whole"
awk '{ last[$1] = $0 } END { for (name in last) print last[name] }' "$notes/manifest" |
    sort >"$work/extracted"
lost=0
for name in $(comm -3 "$work/whole" "$work/extracted" | awk '{ print $1 }' | sort -u); do
    rm -rf "$set/$name"
    lost=$((lost + 1))
done
again='and are removed; the same command extracts them anew'
[ "$lost" = 0 ] || refuse DATA-PARTS "$lost classes were not as they had been extracted, $again"
echo "dlperf progress $total $total $files"
