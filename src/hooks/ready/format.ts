// hooks/ready/format.ts: runs the project's formatter inside the sandbox over newly written files.
// Formatters that are not installed are skipped; the agent sees failures.
import type { HookInput } from '../../protocol/hook.ts';

/** null: no written file to format. */
export function formatCommand({ actions, project }: HookInput): string[] | null {
  const paths = actions.flatMap((action) =>
    action.kind === 'write' && action.change !== 'delete' ? [action.path] : [],
  );
  // A leading "-" would make a name an option.
  const files = [...new Set(paths)]
    .filter((path) => path !== '')
    .map((path) => (path.startsWith('/') ? path : `./${path}`));
  return files.length === 0 ? null : ['/bin/sh', '-c', SCRIPT, 'format', project, ...files.slice(0, 200)];
}

const SCRIPT = String.raw`
cd "$1" || exit 2
shift
status=0
run() { out=$("$@" 2>&1 </dev/null) || { printf '%s\n' "$out" >&2; status=2; }; }
any() { for name; do [ -e "$name" ] && return 0; done; return 1; }
find_tool() { for dir in node_modules/.bin .venv/bin venv/bin; do [ -x "$dir/$1" ] && { tool="$PWD/$dir/$1"; return 0; }; done; tool=$(command -v "$1"); }
for file; do
  [ -f "$file" ] || continue
  if any biome.json biome.jsonc && find_tool biome; then
    run "$tool" format --write --files-ignore-unknown=true --no-errors-on-unmatched "$file"
  elif { any .prettierrc .prettierrc.* prettier.config.* || grep -qs '"prettier"[[:space:]]*:[[:space:]]*[{"]' package.json; } && find_tool prettier; then
    run "$tool" --write --ignore-unknown --log-level warn "$file"
  fi
  case $file in
    *.py | *.pyi)
      if { any ruff.toml .ruff.toml || grep -qs '^\[tool\.ruff' pyproject.toml; } && find_tool ruff; then run "$tool" format --quiet "$file"; fi ;;
    *.go)
      if any go.mod go.work && find_tool gofmt; then run "$tool" -w "$file"; fi ;;
    *.rs)
      if any Cargo.toml && find_tool rustfmt; then
        edition=$(sed -n 's/^edition *= *"\([0-9]*\)".*/\1/p' Cargo.toml | head -n 1)
        run "$tool" --edition "\${edition:-2021}" "$file"
      fi ;;
  esac
done
exit $status
`.replace('\\$', '$');
