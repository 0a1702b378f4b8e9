// sandbox/spec/late-env.ts: variables that take effect before a program's first line: those of the loader, the C library and shells.
// Pure.
// A project may set them, and a library preloaded into prlimit would run before the limits are set. So only the command gets them, from
// the last step before it.
type Env = Readonly<Record<string, string>>;

const OBEYED_FIRST =
  /^(?:LD_|GLIBC_|MALLOC_|MUSL_|BASH|GCONV_PATH$|GETCONF_DIR$|LOCPATH$|NLSPATH$|ENV$|IFS$|PS4$|SHELLOPTS$)/;
/** A shell that has to export these fails; no program needs them from outside. */
const NEVER = /^(?:SHELLOPTS|BASHOPTS|BASH_VERSINFO)$/;

/** `first` is the environment of the sandbox's first process; `argv` is prepended to the command. */
export function lateEnv(env: Env): { readonly first: Env; readonly argv: readonly string[] } {
  const late = Object.keys(env).filter((name) => OBEYED_FIRST.test(name));
  if (late.length === 0) return { first: env, argv: [] };
  const given = late.filter((name) => !NEVER.test(name)).map((name, i) => ({ name, as: `AGS_LATE_${i}` }));
  const first = {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !late.includes(name))),
    ...Object.fromEntries(given.map(({ name, as }) => [as, env[name] ?? ''])),
  };
  const script = [
    ...given.map(({ name, as }) => `export ${name}="$${as}"`),
    ...given.map(({ as }) => `unset ${as}`),
    'exec "$@"',
  ];
  return { first, argv: ['/bin/sh', '-c', script.join('; '), 'ags'] };
}
