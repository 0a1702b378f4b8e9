// sandbox/checks/evidence.ts: the project and the script of a test sandbox, and the answers that the script must give.
// Invariant: each protection is judged by its effect inside, not by the option that requests it. A missing answer counts as a missing
// protection.
import { readlinkSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RLIMITS } from '../watch/limits.ts';

const NAMESPACES = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'] as const;
type NamespaceName = (typeof NAMESPACES)[number];

/**
 * A script for sh in the project's directory; its arguments are paths that must not exist. It tries to write only where the sandbox alone
 * is affected: if a protection is missing, the test must do no damage.
 */
export const INSIDE = `
tail -n +1 /proc/self/status /proc/self/limits /proc/net/dev /proc/self/mountinfo
echo '==> namespaces <=='; cd /proc/self/ns && readlink ${NAMESPACES.join(' ')}; cd "$OLDPWD"
echo '==> unshare <=='; unshare --user true 2>&1 && echo allowed
echo '==> written <=='; for dir in / /dev/; do (: > "\${dir}ags-probe") 2>/dev/null && echo "$dir"; done
echo '==> seen <=='; for path; do [ ! -e "$path" ] || echo "$path"; done
echo '==> workspace <=='
{ echo changed > kept && echo new > new && rm gone dir/inner && rmdir dir && mkdir dir && echo new > dir/new &&
  read -r word < kept && [ "$word" = changed ] && [ ! -e gone ] && [ "$(echo dir/*)" = dir/new ] && echo works; } 2>&1
echo '==> end <=='
`;

/** For a sandbox without the filter: only the kernel's own limit can refuse, with its own message. */
export const WITHOUT_FILTER = 'echo inside; unshare --user true 2>&1 && echo allowed';
export const REFUSED_BY_LIMIT = /No space left on device/;

export interface Expected {
  readonly uid: number;
  /** As prlimit takes them: "--nofile=1024". */
  readonly limits: readonly string[];
  /** Mount points that must be read-only. */
  readonly readOnly: readonly string[];
  /** The caller's namespaces; the sandbox must share none of them. */
  readonly outside: Readonly<Partial<Record<NamespaceName, string>>>;
}

export interface Evidence {
  /** Protections that were not in force, each as part of a sentence about the sandbox ("it ..."). */
  readonly lacking: readonly string[];
  /** null: files could be changed, deleted and created again in the workspace. Otherwise the error output. */
  readonly workspace: string | null;
}

export function judge(report: string, expected: Expected): Evidence {
  const part = sections(report);
  const status = (name: string): string =>
    new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(part('/proc/self/status'))?.[1]?.trim() ?? 'unknown';
  const inside = part('namespaces').split('\n');
  const shared = NAMESPACES.filter(
    (name, i) =>
      expected.outside[name] !== undefined &&
      (inside[i]?.startsWith(`${name}:[`) !== true || inside[i] === expected.outside[name]),
  );
  const interfaces = [...part('/proc/net/dev').matchAll(/^\s*(\S+):/gm)].map(([, name]) => name);
  const writable = expected.readOnly.filter((path) => !isReadOnly(part('/proc/self/mountinfo'), path));
  const written = part('written')
    .split('\n')
    .filter((dir) => dir !== '');
  const seen = part('seen')
    .split('\n')
    .filter((path) => path !== '');
  const claims: readonly (readonly [boolean, string])[] = [
    [
      status('Uid') === Array(4).fill(expected.uid).join('\t') && expected.uid !== 0,
      `it ran as uid ${status('Uid').split('\t')[0]}, not as ${expected.uid}`,
    ],
    [
      ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].every((set) => /^0+$/.test(status(set))),
      'it kept capabilities',
    ],
    // A session that was created outside has no ID inside.
    [/^[1-9]/.test(status('NSsid')), 'it belonged to the session of its caller'],
    [status('NoNewPrivs') === '1', 'it could gain new privileges'],
    [
      status('Seccomp') === '2' && /Operation not permitted/.test(part('unshare')) && !/allowed/.test(part('unshare')),
      'its system calls were not filtered',
    ],
    [shared.length === 0, `it shared the ${shared.join(', ')} namespace of this machine`],
    [interfaces.join() === 'lo', `it saw other network interfaces than loopback (${interfaces.join(', ')})`],
    [writable.length === 0, `it could write in ${writable.slice(0, 3).join(', ')}`],
    [written.length === 0, `it made files in ${written.join(', ')}`],
    [seen.length === 0, 'it saw files that it must not see'],
    [expected.limits.every((option) => isSet(part('/proc/self/limits'), option)), 'its limits were not set'],
    [report.endsWith('==> end <==\n'), 'it did not answer to the end'],
  ];
  const workspace = part('workspace').trim();
  return {
    lacking: claims.filter(([holds]) => !holds).map(([, words]) => words),
    workspace: workspace === 'works' ? null : workspace,
  };
}

export function ownNamespaces(): Record<NamespaceName, string> {
  return Object.fromEntries(NAMESPACES.map((name) => [name, readlinkSync(`/proc/self/ns/${name}`)])) as Record<
    NamespaceName,
    string
  >;
}

/** Splits the output format that tail uses for several files. */
function sections(report: string): (name: string) => string {
  const [, ...parts] = report.split(/^==> (.+) <==\n/m);
  return (name) => parts[parts.findIndex((part, i) => i % 2 === 0 && part === name) + 1] ?? '';
}

function isSet(limits: string, option: string): boolean {
  const [, name, value] = /^--([a-z]+)=(\d+)/.exec(option) ?? [];
  const row = Object.entries(RLIMITS).find(([known]) => known === name)?.[1];
  return row !== undefined && new RegExp(`^${row}\\s+${value}\\s`, 'm').test(limits);
}

/** The last mount at a path counts. mountinfo writes blanks and similar characters in octal. */
function isReadOnly(mountinfo: string, path: string): boolean {
  const escaped = path.replaceAll(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
  const fields = mountinfo
    .split('\n')
    .map((line) => line.split(' '))
    .findLast((found) => found[4] === escaped);
  // Read-only is the mount, or the whole file system.
  return [fields?.[5], fields?.at(-1)].some((options) => options?.split(',').includes('ro') === true);
}

/** Files that the script in evidence.ts changes, deletes and must never see. */
const FILES: Readonly<Record<string, string>> = {
  kept: 'as it was\n',
  gone: 'to be deleted\n',
  'dir/inner': 'to be deleted with its directory\n',
  secret: 'never to be seen\n',
};
export const HIDDEN = ['secret'] as const;

export function writeProject(root: string): void {
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

export function isUntouched(root: string): boolean {
  const names = new Set(Object.keys(FILES).map((path) => path.split('/')[0]));
  return (
    readdirSync(root).length === names.size &&
    Object.entries(FILES).every(([path, content]) => holds(join(root, path), content))
  );
}

function holds(path: string, content: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true && readFileSync(path, 'utf8') === content;
}
