#!/bin/sh
# --timeline: who had which GPU when, as lines, as a picture and as a web page.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
gpus 2
export TZ=UTC
HOUR=3600
BEGIN=$(($(date +%s) - 10 * HOUR)) # ten hours ago
tickets=0

# ran USER GPUS FROM TO KEY=VALUE…: records a job; FROM and TO are minutes after $BEGIN
ran() {
	tickets=$((tickets + 1))
	ran_user=$1 ran_gpus=$2 ran_from=$(((BEGIN + $3 * 60) * 1000)) ran_to=$(((BEGIN + $4 * 60) * 1000))
	shift 4
	"$TOOLS/tellend" "$GPULEASE_DIR" ticket=$tickets uid=${#ran_user} user="$ran_user" \
		gpus="$ran_gpus" count=$(($(echo "$ran_gpus" | tr -dc , | wc -c) + 1)) \
		since=$ran_from alive=$ran_to gone=$ran_to status=0 "$@" ||
		bail 'cannot write the history'
}

timeline() {
	"$GPULEASE" --timeline --since "@$BEGIN" "$@"
}

# area: the GPU hours that are painted in the picture on stdin, without pale parts
area() {
	awk -v hours=10 '
		/class="u[-a-z]* pale"/ { next }
		/^<rect class="u/ && match($0, / width="[0-9.e-]*%/) {
			width = substr($0, RSTART + 8, RLENGTH - 9)
			match($0, / height="[^"]*/)
			sum += width / 100 * substr($0, RSTART + 9, RLENGTH - 9) / 20
		}
		/^<path class="u/ {
			count = split($0, parts, "M")
			for (i = 2; i <= count; i++) {
				split(parts[i], numbers, /[hvz]/)
				sum += numbers[2] / 1000 * numbers[3] / 20
			}
		}
		END { printf "%.6f\n", sum * hours }'
}

# area_is_right SVG: whether it is the GPU hours of --accounting, to 0.1 %
area_is_right() {
	accounted=$("$GPULEASE" --accounting --json --since "@$BEGIN" |
		"$TOOLS/jsoncheck" total.gpu_hours_least)
	painted=$(area <"$1")
	awk -v a="$accounted" -v p="$painted" 'BEGIN {
		off = p > a ? p - a : a - p
		exit !(a > 0 && off <= a / 1000 + 0.01) }' || {
		echo "# painted $painted, accounted $accounted"
		return 1
	}
}

# --- nothing ------------------------------------------------------------------------------

run 'without any job --timeline says so' 0 '*no job had a GPU in this time' '' timeline
run 'without any job there is a picture' 0 '<svg*No job had a GPU in this time.*</svg>' '' \
	timeline --svg -
run 'without any job there is a page' 0 '<!DOCTYPE html>*No job had a GPU in this time.*</html>' '' \
	timeline --html -

# --- lines --------------------------------------------------------------------------------

"$GPULEASE" -n 2 true # after a job the GPUs are known
rm -f "$S/dir/history"
wait_until '! "$GPULEASE" --status --json | grep -q "\"lingering\""'
ran alice 0,1 0 240 waited=600000 busy=80/100
ran bob 0 300 480 share=50 waited=1000
ran carola 1 300 360 gone=$(((BEGIN + 420 * 60) * 1000))
export COLUMNS=66
run 'a row for each GPU has the letters of the users' 0 '*: *, 2 GPUs, *% leased

*|*:00*
GPU 0 aaaaaaaaaaaaaaaaaaaaaaaa......bbbbbbbbbbbbbbbbbb...........[.?]
GPU 1 aaaaaaaaaaaaaaaaaaaaaaaa......cccccc\?\?\?\?\?\?.................[.?]

*a  alice*1*8.00*10m*80%*
*b  bob*1*1.50*1s*
*c  carola*1*1.00*2.00*
*total*4*10.50*11.50*' '' timeline
is 'without a terminal there are no colours' [ "$(tr -dc '\033' <"$S/out" | wc -c)" -eq 0 ]
run '--user shows one user' 0 '*jobs of bob*
GPU 0 ..............................aaaaaaaaaaaaaaaaaa............
GPU 1 ............................................................
*a  bob*' '' timeline --user bob
is '--user shows no other user' [ "$(grep -c alice "$S/out")" -eq 0 ]
unset COLUMNS
TERM=xterm "$TOOLS/onterminal" 66 "$GPULEASE" --timeline --since "@$BEGIN" >"$S/page"
is 'on a terminal the rows are coloured' grep -q "$(printf '\033')\[48;5;214;38;5;16ma" "$S/page"
sed "s/$(printf '\033')\[[0-9;]*m//g" "$S/page" >"$S/letters"
is 'the colours do not change the letters' \
	grep -q '^GPU 0 aaaaaaaaaaaaaaaaaaaaaaaa\.\.\.\.\.\.bbbbbbbbbbbbbbbbbb\.*?*$' "$S/letters"
is 'no line is wider than the terminal' [ "$(awk '{ if (length > w) w = length } END { print w }' "$S/letters")" -le 66 ]
TERM=xterm "$TOOLS/onterminal" 66 env NO_COLOR=1 "$GPULEASE" --timeline >"$S/page"
is 'with NO_COLOR there are no colours' [ "$(tr -dc '\033' <"$S/page" | wc -c)" -eq 0 ]
"$GPULEASE" --pause 1 --reason 'a new fan' >"$S/out" 2>&1
run 'a paused GPU is marked' 0 '*
GPU 0 *
GPU 1 paused *' '' timeline
run 'a paused GPU is marked in the picture' 0 "*GPU 1 <*, paused by $(id -un)<*" '' timeline --svg -
"$GPULEASE" --resume 1 >"$S/out" 2>&1

# --- pictures and pages -------------------------------------------------------------------

timeline --svg "$S/picture"
is 'the painted area is the GPU hours of --accounting' area_is_right "$S/picture"
timeline --html "$S/page"
timeline --html "$S/page" # over the first
is 'the page has the same area' area_is_right "$S/page"
is 'a new file has the mode of the umask' [ "$(stat -c %a "$S/picture" "$S/page" | tr '\n' ' ')" = '644 644 ' ]
(umask 077 && timeline --svg "$S/secret")
is 'a strict umask counts' [ "$(stat -c %a "$S/secret")" = 600 ]
ln -s "$S/secret" "$S/link"
timeline --svg "$S/link"
is 'the file behind a symbolic link is replaced' [ -L "$S/link" ]
is 'no temporary file is left' [ -z "$(find "$S" -mindepth 1 -maxdepth 1 -name '*.??????')" ]
mkfifo "$S/pipe"
cat "$S/pipe" >"$S/piped" &
reader=$!
started="$started $reader"
timeline --svg "$S/pipe"
is 'a pipe stays a pipe' [ -p "$S/pipe" ]
[ -p "$S/pipe" ] && wait "$reader"
is 'the picture comes through the pipe' grep -q '^</svg>' "$S/piped"
run '--svg - prints the picture' 0 '<svg xmlns*</svg>' '' timeline --svg -
run 'a folder cannot be written' 125 '' "gpulease: cannot write '$S': Is a directory" \
	timeline --svg "$S"
run 'a file in no folder cannot be written' 125 '' \
	"gpulease: cannot write '*': No such file or directory" \
	timeline --html "$S/none/page"
run '--svg and --html exclude each other' 125 '' \
	'gpulease: --svg and --html exclude each other; give one' timeline --svg - --html -
run 'a period in the future is refused' 125 '' \
	'gpulease: --since is not in the past; give an earlier time' \
	"$GPULEASE" --timeline --since "@$((BEGIN + 20 * HOUR))"
is 'the page asks for nothing from elsewhere' [ \
	"$(grep -c -e 'src=' -e '@import' -e '<script' -e '<link' "$S/page")" -eq 0 ]

(cd "$S" && timeline --user nobody-here --html ./relative)
is 'a user without jobs has an empty page' grep -q 'No job had a GPU in this time' "$S/relative"

# --- what runs ----------------------------------------------------------------------------

holder now -n 1
wait_until 'timeline --svg "$S/picture"; grep -q "to now<" "$S/picture"'
run '--user shows no running job of others' 0 '*no job had a GPU in this time' '' timeline --user dave
run 'a running job is in the picture up to now' 0 "*<title>$(id -un): job *now</title>*" '' cat "$S/picture"
release_all now

# --- names of others, many jobs -----------------------------------------------------------

hostile='"><script>x</script>]]>&'
ran "$hostile" 0 490 500 name="$(printf '</title>\033[31m\377%s' "$hostile")"
ran "$(printf 'a\001\303(\357\277\277')" 1 490 500 name='--&lt;'
timeline --svg "$S/picture"
timeline --html "$S/page"
is 'names of others are no markup' [ "$(cat "$S/picture" "$S/page" | grep -c '<script')" -eq 0 ]
is 'names of others are shown' grep -qF '&quot;&gt;&lt;script&gt;x&lt;/script&gt;]]&gt;&amp;' "$S/page"
is 'no control character is in them' [ "$(cat "$S/picture" "$S/page" | LC_ALL=C tr -d '\n\t -~\200-\377' | wc -c)" -eq 0 ]
"$TOOLS/tellend" "$S/dir" -n 590 ticket=1000 uid=7 user=dave gpus=0 count=1 \
	since=$((BEGIN * 1000)) alive=$((BEGIN * 1000 + 30000)) gone=$((BEGIN * 1000 + 30000)) status=0
"$TOOLS/tellend" "$S/dir" -n 590 ticket=2000 uid=8 user=erin gpus=1 count=1 share=30 \
	since=$((BEGIN * 1000)) alive=$((BEGIN * 1000 + 50000)) gone=$((BEGIN * 1000 + 60000)) status=0
for minute in 0 7 14 21 28 35 42 49; do
	"$TOOLS/tellend" "$S/dir" -n 540 ticket=$((3000 + minute * 1000)) uid=9 user=frank gpus=0,1 \
		count=2 share=5 since=$(((BEGIN + minute) * 1000)) \
		alive=$(((BEGIN + minute + 5) * 1000)) gone=$(((BEGIN + minute + 5) * 1000)) status=0
done
timeline --svg "$S/picture"
timeline --html "$S/page"
is 'with 5,500 jobs the area is still right' area_is_right "$S/picture"
is 'with 5,500 jobs the page has at most 400 KB' [ "$(stat -c %s "$S/page")" -le 409600 ]
is 'with 5,500 jobs the picture has short jobs in paths' grep -q '^<path class="u' "$S/picture"
if command -v xmllint >/dev/null 2>&1; then
	is 'the picture is XML' xmllint --nonet --noout "$S/picture"
	is 'the page is XML' xmllint --nonet --noout "$S/page"
else
	skip 'the picture is XML' 'xmllint is not installed'
	skip 'the page is XML' 'xmllint is not installed'
fi

# --- a browser ----------------------------------------------------------------------------

# browse WIDTH: prints what a browser says of the page in a frame of that width: how many bars can be
# seen, and whether `fits`; else `wide`, or `cut`: a part of the table is seen only when it is scrolled
browse() {
	{
		printf '<html><body><iframe id="f" width="%s" height="800" srcdoc="' "$1"
		sed 's/&/\&amp;/g; s/"/\&quot;/g' "$S/page"
		cat <<-'END'
			"></iframe><script>
			onload = function () {
				var d = document.getElementById("f").contentDocument, n = 0
				d.querySelectorAll("figure [class^=u]").forEach(function (bar) {
					n += bar.getBoundingClientRect().width > 0 && getComputedStyle(bar).fill != "rgb(0, 0, 0)"
				})
				function fits(each) { return each.scrollWidth <= each.clientWidth }
				document.body.textContent = "seen: " + n + " " + (!fits(d.documentElement) ? "wide" :
					fits(d.querySelector(".scroll")) ? "fits" : "cut")
			}
			</script></body></html>
		END
	} >"$S/frame.html"
	HOME=$S timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu --window-size=1400,900 \
		--user-data-dir="$S/browser" --dump-dom "file://$S/frame.html" 2>/dev/null |
		sed -n 's/.*seen: \([0-9]* [a-z]*\).*/\1/p'
}

browser=
for each in chromium chromium-browser google-chrome; do
	[ -n "$browser" ] || ! command -v "$each" >/dev/null 2>&1 || browser=$each
done
for width in 400 1280; do
	if [ -z "$browser" ]; then
		skip "a browser shows the page at $width pixels" 'chromium is not installed'
		continue
	fi
	seen=$(browse $width)
	is "a browser shows the bars at $width pixels" [ "${seen% *}" -gt 5 ]
	is "the page and its table are not wider than $width pixels" [ "${seen#* }" = fits ]
done
finish
