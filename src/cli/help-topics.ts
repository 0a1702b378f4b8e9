// cli/help-topics.ts: help that belongs to no single command. What a table in the code says is printed from that table.
import { ERRORS, EXIT } from '../protocol/errors.ts';
import type { Paint } from './colour.ts';
import { meanings, section, table, wrap } from './format.ts';

export const TOPICS = { 'exit-codes': exitCodes, environment, json, network } as const satisfies Record<
  string,
  (paint: Paint) => string
>;

const STATUSES = {
  done: 'done',
  failed: 'failed, or the answer to a question was no',
  usage: 'wrong usage or configuration, or a question without a terminal',
  notFound: 'no such task or file',
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
        ['XDG_STATE_HOME', 'tasks and approvals are in ags/ below it (~/.local/state)'],
        ['XDG_CACHE_HOME', 'what can be made again is in ags/ below it (~/.cache)'],
        ['NO_COLOR', 'no colours, whatever its value'],
        ['FORCE_COLOR', 'colours also when the output is not a terminal'],
        ['SHELL', 'what "ags shell" starts'],
        ['VISUAL, EDITOR', 'what edits a file in "ags review"'],
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
      'Commands that show something take --json: plan, list, rm, cleanup, review, diff, allow, deny, net, config, trust, doctor. They print one document on stdout, without colours, and never ask a question: what they would ask about needs its flag.',
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
      'A sandbox has a network of its own with nothing in it but loopback: programs inside reach each other on 127.0.0.1 and ::1. There is no route to this machine, its other sandboxes, the local network or the internet, and no name server. No socket of this machine is visible either.',
    ),
    section(
      'What follows',
      meanings([
        ['servers', 'any port may be taken; two sandboxes never collide'],
        [
          'downloads',
          'fail inside; fetch packages first, outside. Dependency directories of the project (node_modules, .venv, target, vendor) are visible inside',
        ],
        ['your services', 'a database on this machine cannot be reached from inside'],
      ]),
      paint,
    ),
    wrap('What is in force for a command: ags plan -- <command>'),
  ].join('\n');
}
