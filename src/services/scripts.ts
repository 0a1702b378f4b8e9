// services/scripts.ts: the `sh` scripts that run inside a service's sandbox. Values arrive as variables and arguments.
import { environmentOf } from './presets/connection.ts';
import type { PlannedService } from '../run/planned-services.ts';

/** Starts the service. */
export function runScript({ service, preset }: PlannedService): string {
  const { run } = service;
  if (preset !== null) return preset.run;
  return typeof run === 'string' ? run : `exec ${(run ?? []).map(quoted).join(' ')}`;
}

/** Checks once whether the service is ready. */
export function readyScript({ service, preset, to }: PlannedService): string {
  const { command } = service.ready;
  if (command !== null) return command;
  const port = readyPort({ service, preset, to });
  if (port === null) return preset?.ready ?? 'true';
  return `perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(PeerAddr => "127.0.0.1:${port}", Timeout => 1)'`;
}

/** The port whose first accepted connection means ready; null: a command decides. */
export function readyPort({ service, preset, to }: Pick<PlannedService, 'service' | 'preset' | 'to'>): number | null {
  const { command, port } = service.ready;
  return command !== null || (port === null && preset?.ready != null) ? null : (port ?? to.port);
}

/** Repeats the check until the service is ready. */
export const READY_LOOP = `until sh -c "$1" > /dev/null 2>&1 < /dev/null; do sleep 0.02; done`;

/**
 * Seeds the data directory: initialise, start, wait, prepare, load the seed files in order, shut down cleanly.
 * Arguments: init, run, ready, prepare, signal, whether the exit code must be 0, then pairs of a command and a file.
 * A subshell records when the server has ended: a process that was not waited for can still be signalled.
 */
export const SEED_SCRIPT = `fail() { echo "ags: $1" >&2; exit 1; }
init=$1 run=$2 ready=$3 prepare=$4 stop=$5 strict=$6; shift 6
if [ -n "$init" ]; then sh -c "$init" || fail 'it could not be initialised'; fi
( sh -c 'echo $$ > /tmp/server; exec sh -c "$1"' sh "$run" < /dev/null; echo $? > /tmp/ended ) &
until sh -c "$ready" > /dev/null 2>&1 < /dev/null; do [ ! -e /tmp/ended ] || fail 'it ended before it was ready'; sleep 0.02; done
if [ -n "$prepare" ]; then sh -c "$prepare" < /dev/null || fail 'it could not be prepared'; fi
while [ $# -gt 0 ]; do
  sh -c "$1" seed "$2" < /dev/null || fail "the seed \${2##*/} failed"; shift 2
done
kill -"$stop" "$(cat /tmp/server)"; wait
[ "$strict" = no ] || [ "$(cat /tmp/ended)" = 0 ] || fail 'it did not end in good order'`;

/** The command that loads a seed file; scripts get the same variables as clients. */
export function seedCommand(one: PlannedService, path: string): string {
  const ending = Object.keys(one.preset?.seeds ?? {}).find((known) => path.endsWith(known));
  if (ending !== undefined) return one.preset?.seeds[ending] ?? '';
  const env = environmentOf([{ ...one, to: { ...one.to, host: '127.0.0.1' } }]);
  return [...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`), 'exec sh "$1"'].join('\n');
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
