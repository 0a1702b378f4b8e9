// cli/help-topics.ts: help that belongs to no single command. Lists are printed from the tables that the code uses.
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
  failed: 'failed, or you answered a question with no',
  usage: 'wrong usage or configuration, or a question with no terminal to ask it on',
  notFound: 'no such task or file',
  signIn: 'an agent is not signed in; see: ags auth status',
  checks: 'a check failed',
  conflict: 'changed on both sides, or in use by another process',
  limit: 'a limit was reached',
  unavailable: 'a protection or program is missing; see: ags doctor',
  cancelled: 'cancelled with Ctrl-C or Ctrl-D, or the task was stopped',
} as const satisfies Record<keyof typeof EXIT, string>;

function exitCodes(paint: Paint): string {
  const statuses = Object.entries(EXIT).map(([name, status]) => [String(status), STATUSES[name as keyof typeof EXIT]]);
  const errors = Object.entries(ERRORS).map(([code, { exit, meaning }]) => ({ code, exit, meaning }));
  return [
    wrap(
      '"ags exec" and "ags shell" exit with the status of the command they ran: 128 + n if signal n killed it, 127 if it does not exist inside. All other commands, and errors before a command starts, use one of these; a command over several tasks uses that of the first failure:',
    ),
    section('Exit status', table(statuses, { indent: 2 }), paint),
    wrap('With --json, an error is one JSON document on stderr with one of these codes:'),
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
        ['XDG_DATA_HOME', 'agents that ags installed are in ags/ below it (~/.local/share)'],
        ['XDG_CACHE_HOME', 'caches are in ags/ below it (~/.cache)'],
        ['AGS_ALLOW', 'hosts to allow, as with --allow: AGS_ALLOW="example.com,*.example.org:8443"'],
        ['NO_COLOR', 'no colours, whatever its value'],
        ['FORCE_COLOR', 'colours even if the output is not a terminal'],
        ['SHELL', 'the shell that "ags shell" starts'],
        ['VISUAL, EDITOR', 'the editor for the goal of "ags start", and for "ags review"'],
        ['GIT_PAGER, PAGER', 'the pager of "ags diff"; core.pager of your git settings counts too'],
        ['AGS_DEVCONTAINER', '1 in a dev container made by ags; "ags net" then reports on that container'],
      ]),
      paint,
    ),
    section(
      'Set inside a sandbox',
      meanings([
        ['AGS_SANDBOX', '1, so that a program can detect the sandbox'],
        ['AGS_TASK', 'the name of the task'],
        ['HOME', 'the same path as outside, but a directory of the task, or one that is kept (ags help home)'],
        ['PATH', 'yours, without the directories that do not exist inside'],
        ['TMPDIR', '/tmp, private to the task'],
      ]),
      paint,
    ),
    wrap(
      'Of your environment, ags passes on only language, terminal and tool-path variables. To pass on more: "env" in the configuration, or -e NAME. To see the result: ags plan -- <command>',
    ),
  ].join('\n');
}

function json(paint: Paint): string {
  return [
    wrap(
      'Commands that show something take --json: start, logs, show, plan, list, rm, cleanup, review, diff, check, merge, apply, undo, export, import, image, devcontainer, open, allow, deny, net, services, agents, auth, config, home, trust, doctor. They print one document on stdout (start and logs: one event a line; show, check and merge: one line for each task), without colours, and never ask a question: pass the flag that answers it.',
    ),
    section(
      'Conventions',
      meanings([
        ['times', 'ISO 8601 in UTC: 2026-01-31T12:00:00.000Z'],
        ['sizes', 'bytes, in fields that end in Bytes'],
        ['fields', 'new ones may be added, existing ones keep their names; ignore unknown ones'],
      ]),
      paint,
    ),
    section('Errors', '  {"error":{"code":"task.not-found","message":"...","hint":"..."}}\n', paint),
    wrap('Errors go to stderr, with the exit status of their code. All codes: ags help exit-codes'),
  ].join('\n');
}

function network(paint: Paint): string {
  return [
    wrap(
      'A sandbox has its own network with only loopback: programs inside reach each other on 127.0.0.1 and ::1. It has no route to this machine, to other sandboxes, to the local network or to the internet. The gateway is the only way out: it lets connections through that a rule allows, and logs every decision.',
    ),
    section(
      'What programs find',
      meanings([
        ['proxy', 'http://127.0.0.1:3128, in the usual proxy variables; it speaks HTTP, CONNECT and SOCKS5'],
        ['names', 'allowed host names resolve to the gateway, so programs without proxy support work too'],
        ['servers', 'programs may listen on any port from 1024 except 3128; sandboxes never collide'],
        ['refusals', 'a 403 whose first line names the host and says that policy refused it'],
      ]),
      paint,
    ),
    section(
      'What you can do',
      meanings([
        ['ags net rules', 'allowed and denied hosts, and the file that says so'],
        ['ags allow <host>', 'in running sandboxes; --project: in ags.yaml; --always: in all projects. A deny wins'],
        ['ags net test [hosts]', 'try hosts from inside a sandbox, with the reason'],
        ['ags net log [-f]', 'every decision: host, program, verdict, bytes'],
        ['--network record', 'ask about hosts without a rule; then: ags net lock'],
        ['--tcp db=localhost:5432', 'db:5432 inside connects to that server on this machine'],
        ['--publish 3000', 'make port 3000 inside available on your loopback'],
        ['--network off', 'loopback only'],
      ]),
      paint,
    ),
    wrap('To see the network of a command: ags plan -- <command>'),
  ].join('\n');
}

function hooks(paint: Paint): string {
  return [
    wrap(
      'Hooks are programs that approve or refuse what an agent does. They run on this machine, outside the sandbox, where no agent can see or change them, and read JSON from standard input.',
    ),
    section(
      'When',
      meanings([
        ['pre-any', 'before every action of an agent'],
        ['pre-bash', 'before a command'],
        ['pre-writes', 'before a file is written'],
        ['post-writes', 'after a file was written; the agent sees a refusal'],
        ['post-stop', 'when a turn of the agent has ended; a refusal sends it back to work'],
      ] satisfies [HookPoint, string][]),
      paint,
    ),
    section(
      'Where',
      meanings([
        ['.ags/hooks/<point>', 'of the project, also <point>.d/*; you approve their content: ags trust'],
        ['~/.config/ags/hooks', 'your own, for all projects'],
        ['hooks:', 'commands in ags.yaml or config.yaml; "inside: true" runs one in the sandbox'],
        ['hooks.use', `hooks that come with ags: ${READY_HOOKS.join(', ')}`],
      ]),
      paint,
    ),
    section(
      'Answers',
      meanings([
        ['exit 0', 'approve; the action needs the approval of all hooks'],
        ['exit 2', 'refuse; the agent sees what the hook printed on stderr'],
        ['else', 'refuse as well: any other status, a signal, a timeout'],
      ]),
      paint,
    ),
    wrap('The JSON fields, with examples in sh, Python and JavaScript: docs/agents/hooks.md'),
  ].join('\n');
}

function services(paint: Paint): string {
  const known = Object.values(PRESETS).map(({ name, title, ports, install, tried }): [string, string] => [
    name,
    `${title}, port ${ports.join(' and ')}; ${install}${tried ? '' : ' (not covered by the tests of ags)'}`,
  ]);
  return [
    wrap(
      'Services are databases and similar programs of this machine that run beside a task. Each runs in its own sandbox, without network or project files, and its data belongs to that one task. The sandbox of the task has a listener for each port of a service. Services start with the task; a connection waits until the service is ready.',
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
        ['db:5432', 'name and port of the service; localhost:5432 is the first service with that port'],
        ['DATABASE_URL', 'and PGHOST, REDIS_URL, MYSQL_URL ...: for the first service of a kind'],
        ['<NAME>_URL', 'for each service: DB_URL, CACHE_URL'],
      ]),
      paint,
    ),
    section(
      'What you can do',
      meanings([
        ['ags services', 'state, address, URL and size of the data'],
        ['ags services logs', 'output of one service; -f follows it'],
        ['ags services open', 'start its client in the sandbox of the task'],
        ['--service <name>', 'start only this service; --no-services: none'],
        ['ags doctor', 'says whether the configured services can run here'],
      ]),
      paint,
    ),
    section('Presets', meanings(known), paint),
    wrap('Seeds, data, limits and failures: docs/services/services.md'),
  ].join('\n');
}
