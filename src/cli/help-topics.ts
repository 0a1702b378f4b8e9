// cli/help-topics.ts: help that belongs to no single command. What a table in the code says is printed from that table.
import { ERRORS, EXIT } from '../protocol/errors.ts';
import { READY_HOOKS, type HookPoint } from '../protocol/hook.ts';
import { PRESETS } from '../services/presets/presets.ts';
import type { Paint } from './terminal/colour.ts';
import { meanings, section, table, wrap } from './terminal/format.ts';

export const TOPICS = {
  'exit-codes': exitCodes,
  environment,
  json,
  network,
  hooks,
  'service-presets': services,
} as const satisfies Record<string, (paint: Paint) => string>;

const STATUSES = {
  done: 'done',
  failed: 'failed, or the answer to a question was no',
  usage: 'wrong usage or configuration, or a question without a terminal',
  notFound: 'no such task or file',
  signIn: 'an agent is not signed in; see: ags auth status',
  checks: 'a check failed',
  conflict: 'changed on both sides, or in use by another process',
  limit: 'a limit was reached',
  unavailable: 'a protection or program is missing; see: ags doctor',
  cancelled: 'cancelled with Ctrl-C',
} as const satisfies Record<keyof typeof EXIT, string>;

function exitCodes(paint: Paint): string {
  const statuses = Object.entries(EXIT).map(([name, status]) => [String(status), STATUSES[name as keyof typeof EXIT]]);
  const errors = Object.entries(ERRORS).map(([code, { exit, meaning }]) => ({ code, exit, meaning }));
  return [
    wrap(
      '"ags exec" and "ags shell" end with the exit status of the command they ran: 128 + n when it died of signal n, 127 when it does not exist inside. All else, and whatever keeps a command from starting, ends with one of these:',
    ),
    section('Exit status', table(statuses, { indent: 2 }), paint),
    wrap('With --json an error is one document on stderr, with one of these codes:'),
    section(
      'Error codes',
      errors
        .map(
          ({ code, exit, meaning }) =>
            `  ${code.padEnd(21)} ${String(exit).padStart(3)}  ${wrap(meaning, { indent: 29 }).trimStart()}`,
        )
        .join(''),
      paint,
    ),
  ].join('\n');
}

function environment(paint: Paint): string {
  return [
    section(
      'Read by ags',
      meanings([
        ['XDG_CONFIG_HOME', 'your configuration is in ags/config.yaml below it (~/.config)'],
        ['XDG_STATE_HOME', 'tasks, sign-ins and approvals are in ags/ below it (~/.local/state)'],
        ['XDG_DATA_HOME', 'agents that ags has installed are in ags/ below it (~/.local/share)'],
        ['XDG_CACHE_HOME', 'what can be made again is in ags/ below it (~/.cache)'],
        ['NO_COLOR', 'no colours, whatever its value'],
        ['FORCE_COLOR', 'colours also when the output is not a terminal'],
        ['SHELL', 'what "ags shell" starts'],
        ['VISUAL, EDITOR', 'what edits a file in "ags review"'],
        ['AGS_DEVCONTAINER', '1 in a dev container of ags: "ags net" speaks of that one'],
      ]),
      paint,
    ),
    section(
      'Set inside a sandbox',
      meanings([
        ['AGS_SANDBOX', '1, so that a program can tell where it runs'],
        ['AGS_TASK', 'the name of the task'],
        ['HOME', "the same path as outside, but the task's own directory"],
        ['PATH', 'yours, without the directories that do not exist inside'],
        ['TMPDIR', '/tmp, which is also its own'],
      ]),
      paint,
    ),
    wrap(
      'Of your environment only the language, the terminal and the places of tools are handed on. More: "env" in the configuration, or -e NAME. What a command would see: ags plan -- <command>',
    ),
  ].join('\n');
}

function json(paint: Paint): string {
  return [
    wrap(
      'Commands that show something take --json: start, logs, show, plan, list, rm, cleanup, review, diff, check, merge, apply, undo, export, import, image, devcontainer, open, allow, deny, net, services, agents, auth, config, trust, doctor. They print one document on stdout (start and logs: one event a line), without colours, and never ask a question: what they would ask about needs its flag.',
    ),
    section(
      'Conventions',
      meanings([
        ['times', 'ISO 8601 in UTC: 2026-01-31T12:00:00.000Z'],
        ['sizes', 'bytes, in fields that end in Bytes'],
        ['fields', 'are added over time, not renamed; ignore those you do not know'],
      ]),
      paint,
    ),
    section('Errors', '  {"error":{"code":"task.not-found","message":"...","hint":"..."}}\n', paint),
    wrap('on stderr, with the exit status of that code. All codes: ags help exit-codes'),
  ].join('\n');
}

function network(paint: Paint): string {
  return [
    wrap(
      'A sandbox has a network of its own with nothing in it but loopback: programs inside reach each other on 127.0.0.1 and ::1. There is no route to this machine, its other sandboxes, the local network or the internet. The one way out is the gateway, which lets through what a rule allows and writes every decision down.',
    ),
    section(
      'What programs find',
      meanings([
        ['proxy', 'http://127.0.0.1:3128, in the variables that programs look for; it speaks HTTP, CONNECT and SOCKS5'],
        ['names', 'those that may be reached lead to the gateway, so programs that know no proxy work too'],
        ['servers', 'any port from 1024 on may be taken, but 3128; two sandboxes never collide'],
        ['refusals', 'a 403 whose first line names the host and says that it is policy'],
      ]),
      paint,
    ),
    section(
      'What you can do',
      meanings([
        ['ags net rules', 'what may be reached, and which file says so'],
        ['ags allow <host>', 'in running sandboxes; --project: in ags.yaml; --always: everywhere. ags deny beats it'],
        ['ags net test [hosts]', 'from inside: reachable or not, and why'],
        ['ags net log [-f]', 'every decision: host, program, verdict, bytes'],
        ['--network record', 'ask about what no rule covers; then: ags net lock'],
        ['--tcp db=localhost:5432', 'db:5432 inside is that server on this machine'],
        ['--publish 3000', 'port 3000 inside, on your own loopback'],
        ['--network off', 'nothing but loopback'],
      ]),
      paint,
    ),
    wrap('What is in force for a command: ags plan -- <command>'),
  ].join('\n');
}

function hooks(paint: Paint): string {
  return [
    wrap(
      'Programs of yours that are asked about what agents do. They run on this machine, outside the sandbox, where no agent can see or change them. They get JSON on their standard input.',
    ),
    section(
      'When',
      meanings([
        ['pre-any', 'before whatever an agent does'],
        ['pre-bash', 'before a command'],
        ['pre-writes', 'before a file is written'],
        ['post-writes', 'after a file was written; a no is shown to the agent'],
        ['post-stop', 'when the agent says that it is done; a no sends it back'],
      ] satisfies [HookPoint, string][]),
      paint,
    ),
    section(
      'Where',
      meanings([
        ['.ags/hooks/<point>', "the project's, also <point>.d/*; approved by content: ags trust"],
        ['~/.config/ags/hooks', 'your own, for all projects'],
        ['hooks:', 'commands in ags.yaml or config.yaml; "inside: true" runs one in the sandbox'],
        ['hooks.use', `those that come with ags: ${READY_HOOKS.join(', ')}`],
      ]),
      paint,
    ),
    section(
      'Answers',
      meanings([
        ['exit 0', 'yes; all hooks must say so'],
        ['exit 2', 'no; what it printed on stderr is shown to the agent'],
        ['else', 'no as well: any other status, a signal, no answer in time'],
      ]),
      paint,
    ),
    wrap('What stands in the JSON, and examples in sh, Python and JavaScript: docs/agents/hooks.md'),
  ].join('\n');
}

function services(paint: Paint): string {
  const known = Object.values(PRESETS).map(({ name, title, ports, install, tried }): [string, string] => [
    name,
    `${title}, port ${ports.join(' and ')}; ${install}${tried ? '' : ' (not tried by the tests of ags)'}`,
  ]);
  return [
    wrap(
      'Databases and the like that run beside a task, from programs of this machine, each in a sandbox of its own: no network, no file of the project, and data that no other task sees. In the sandbox of the task a door leads to each of its ports. They start with the task, and whoever connects waits until the service is ready.',
    ),
    section(
      'In ags.yaml',
      [
        'services:',
        '  db: postgres',
        '  cache: redis',
        '  shop:',
        '    preset: mariadb',
        '    seed: [db/schema.sql, db/seed.sql]',
        '  mail:',
        '    run: my-mail-server --listen 127.0.0.1:1025',
        '    ports: [1025]',
      ]
        .map((line) => `  ${line}\n`)
        .join(''),
      paint,
    ),
    section(
      'What programs find',
      meanings([
        ['db:5432', 'its name and port; localhost:5432 is the first service with that port'],
        ['DATABASE_URL', 'and PGHOST, REDIS_URL, MYSQL_URL ...: of the first one of a kind'],
        ['<NAME>_URL', 'of each: DB_URL, CACHE_URL'],
      ]),
      paint,
    ),
    section(
      'What you can do',
      meanings([
        ['ags services', 'state, address, URL and size of the data'],
        ['ags services logs', 'what one printed; -f goes on'],
        ['ags services open', 'its client, in the sandbox of the task'],
        ['--service <name>', 'only this one; --no-services: none'],
        ['ags doctor', 'whether those that are configured can run here'],
      ]),
      paint,
    ),
    section('Presets', meanings(known), paint),
    wrap('Seeds, data, limits and what happens when one fails: docs/services/services.md'),
  ].join('\n');
}
