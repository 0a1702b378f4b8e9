// test/cli/cli-help.test.ts: help and completion match the commands.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { createPaint } from '../../src/cli/terminal/colour.ts';
import { age, cut, shellLine, table, widthOf, wrap } from '../../src/cli/terminal/format.ts';
import { helpOn, showHelp, unknownVerb } from '../../src/cli/help.ts';
import { TOPICS } from '../../src/cli/help-topics.ts';
import { parseVerb } from '../../src/cli/parse.ts';
import type { Context, Verb } from '../../src/cli/verb.ts';
import { VERBS } from '../../src/cli/verbs/table.ts';
import type { VerbEntry } from '../../src/cli/verb.ts';
import completion, { completeWords } from '../../src/cli/verbs/completion.ts';
import { ERRORS } from '../../src/protocol/errors.ts';
import type { RunFile, TaskFile } from '../../src/protocol/task.ts';
import { createTask } from '../../src/store/tasks.ts';

const plain = createPaint(false);
const entries = Object.entries(VERBS) as [string, VerbEntry][];
const verbs = await Promise.all(
  entries.map(async ([name, entry]): Promise<[string, VerbEntry, Verb]> => [name, entry, (await entry.load()).default]),
);
const tooWide = (text: string): string[] => text.split('\n').filter((line) => widthOf(line) > 80);

async function output(run: (ctx: Context) => Promise<number>, more: Partial<Context> = {}): Promise<string> {
  const pieces: string[] = [];
  const stdout = new Writable({ write: (chunk: Buffer, _, done) => (pieces.push(chunk.toString()), done()) });
  expect(await run({ stdout, stderr: stdout, colour: false, verbs: VERBS, ...more } as unknown as Context)).toBe(0);
  return pieces.join('');
}

const WIDEST = Math.max(...Object.keys(VERBS).map((name) => name.length));

test('every text that leads to "ags help <word>" names a command or a topic', () => {
  const known = [...Object.keys(VERBS), ...Object.keys(TOPICS)];
  const files = ['src', 'docs', 'web/src'].flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: 'utf8' }).flatMap((path) =>
      /\.(ts|tsx|md)$/.test(path) ? [join(root, path)] : [],
    ),
  );
  const named = files.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/\bags help (?!takes one)([a-z-]+)/g)].map(
      ([, word = '']) => `${path}: ${word}`,
    ),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((one) => !known.includes(one.split(': ')[1] ?? ''))).toEqual([]);
});

describe('the overview', () => {
  test('begins with three examples, lists every command in its group, and fits 80 columns', async () => {
    const text = await output((ctx) => showHelp([], ctx));
    const sections = text.split('\n\n');
    expect(sections[1]?.split('\n').map((line) => line.trim().split(/ {2,}/)[0])).toEqual([
      'Examples',
      'ags exec -- npm test',
      'ags shell claude',
      'ags review',
    ]);
    for (const group of new Set(entries.map(([, entry]) => entry.group))) {
      const listed = sections
        .find((part) => part.startsWith(`${group}\n`))
        ?.split('\n')
        .slice(1);
      expect(listed).toEqual(
        entries
          .filter(([, entry]) => entry.group === group)
          .map(([name, entry]) => `  ${name.padEnd(WIDEST)}  ${entry.summary}`),
      );
    }
    expect(tooWide(text)).toEqual([]);
  });

  test('has colours only on request, and the same text', async () => {
    const coloured = await helpOn(undefined, createPaint(true));
    expect(coloured).toContain('\u001b[1mExamples\u001b[0m');
    expect(coloured.replaceAll(/\u001b\[\d+m/g, '')).toBe(await helpOn(undefined, plain));
  });
});

describe.each(verbs)('ags %s', (name, entry, verb) => {
  test('has the summary that the overview shows', () => {
    expect(verb.summary).toBe(entry.summary);
  });

  test('has help that fits 80 columns and names every option', async () => {
    const text = await helpOn(name, plain);
    expect(tooWide(text)).toEqual([]);
    expect(text).toContain(`Usage\n  ags ${name}`);
    const flags = [...text.matchAll(/^ {2}(?:-(\w), | {4})--([\w-]+)/gm)].map(([, short, long]) => [long, short]);
    expect(flags).toEqual([
      ...Object.entries(verb.options).map(([long, option]) => [long, option.short]),
      ['help', 'h'],
    ]);
  });

  test('refuses every argument that it would ignore, with a hint', async () => {
    const words = Array.from({ length: 9 }, (_, i) => `surplus-${i}`);
    const refused = (given: readonly string[]): unknown => {
      const args = parseVerb(name, verb, given);
      return args === 'help' || verb.run(args, NOWHERE);
    };
    const usage = { code: 'usage.invalid', hint: expect.any(String) as unknown };
    if (verb.takes !== 'any')
      await expect(async () => refused(words.slice(0, Number(verb.takes) + 1))).rejects.toMatchObject(usage);
    // Commands with words of their own count what follows each of them.
    for (const [word, takes] of Object.entries(WORDS_TAKE[name] ?? {}))
      await expect(async () => refused([word, ...words.slice(0, takes + 1)]), word).rejects.toMatchObject(usage);
    if (verb.takes === 'any') expect([...TAKE_ALL, ...Object.keys(WORDS_TAKE)]).toContain(name);
  });

  test('has examples that its parser accepts', () => {
    expect(verb.examples.length).toBeGreaterThanOrEqual(1);
    for (const example of verb.examples) {
      const words = wordsOf(example);
      if (words === null) continue;
      expect(words[0]).toBe(name);
      expect(parseVerb(name, verb, words.slice(1))).toMatchObject({ values: expect.anything() as unknown });
    }
  });
});

/** Commands that use every argument: tasks, paths, rules, or the words of a command. */
const TAKE_ALL = [
  'allow',
  'apply',
  'check',
  'continue',
  'deny',
  'diff',
  'exec',
  'logs',
  'merge',
  'plan',
  'restart',
  'rm',
  'shell',
  'show',
  'stop',
];

/** How many arguments follow each word of a command that has words. */
const WORDS_TAKE: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  agents: { list: 0 },
  auth: { claude: 0, remove: 1 },
  image: { list: 0 },
  net: { rules: 1, log: 1, asks: 1, lock: 1 },
  services: { list: 1, 'some-task': 0, logs: 2, open: 2 },
};

/** A command that looks at anything here before it counts its arguments fails in another way. */
const NOWHERE = { env: {}, host: { env: {}, home: '/nonexistent' } } as unknown as Context;

/** The words of our command in an example; null if the example runs it through another program. */
function wordsOf(example: string): string[] | null {
  const own = /(?:^|\| )ags ((?:'[^']*'|"[^"]*"|[^'"|>])*)/.exec(example)?.[1];
  return own === undefined
    ? null
    : [...own.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, bare]) => single ?? double ?? bare ?? '');
}

describe('topics', () => {
  test.each(Object.keys(TOPICS))('ags help %s fits 80 columns', async (topic) => {
    expect(tooWide(await output((ctx) => showHelp([topic], ctx)))).toEqual([]);
  });

  test('exit-codes has every error of the table', async () => {
    const text = await helpOn('exit-codes', plain);
    const listed = [...text.matchAll(/^ {2}([a-z]+\.[a-z-]+) +(\d+) {2}/gm)].map(([, code, exit]) => [
      code,
      Number(exit),
    ]);
    expect(listed).toEqual(Object.entries(ERRORS).map(([code, { exit }]) => [code, exit]));
  });

  test('json names exactly the commands with --json', async () => {
    const named = /take --json: ([^.]+)\./
      .exec((await helpOn('json', plain)).replaceAll('\n', ' '))?.[1]
      ?.split(', ')
      .toSorted();
    expect(named).toEqual(
      verbs
        .filter(([, , verb]) => 'json' in verb.options)
        .map(([name]) => name)
        .toSorted(),
    );
  });

  test('an unknown topic is an error with the list, and a suggestion if one is similar', async () => {
    await expect(helpOn('exitcodes', plain)).rejects.toMatchObject({
      code: 'usage.invalid',
      message: 'There is no help on "exitcodes".',
      hint: `Did you mean: ags help exit-codes\nCommands: ${Object.keys(VERBS).join(', ')}\nTopics: exit-codes, environment, json, network, hooks, service-presets`,
    });
    await expect(helpOn('\u001b[31m', plain)).rejects.toMatchObject({
      message: String.raw`There is no help on "\x1b[31m".`,
    });
  });
});

test.each([
  ['exce', 'Did you mean: ags exec'],
  ['lst', 'Did you mean: ags list'],
  ['ls', 'Did you mean: ags list'],
  ['run', 'Did you mean: ags exec'],
  ['clean', 'Did you mean: ags cleanup'],
  ['reveiw', 'Did you mean: ags review'],
  ['constructor', 'All commands: ags help'],
  ['kubernetes', 'All commands: ags help'],
])('ags %s is no command: %s', (word, hint) => {
  expect(unknownVerb(word)).toMatchObject({ code: 'usage.invalid', message: `ags has no command "${word}".`, hint });
});

test('help keeps the lines of a file that it shows, and fills the others', async () => {
  const text = await helpOn('gateway', plain);
  expect(text).toContain('\n  gateway:\n    listen: ["127.0.0.1:3128", "unix:/run/ags/gateway.sock"]\n    admin: ');
  expect(text).toContain('\n\nlistener: in a network that has only loopback,');
});

describe('completion', () => {
  const script = (shell: string): Promise<string> =>
    output((ctx) => completion.run({ values: {}, positionals: [shell] }, ctx));

  /** The completions in bash, with `ags` replaced by a program that knows two tasks. */
  async function offered(line: string): Promise<string[]> {
    const dir = mkdtempSync(join(tmpdir(), 'ags-completion-'));
    try {
      writeFileSync(
        join(dir, 'ags'),
        '#!/bin/sh\n[ "$1 $2" = "__complete branches" ] && printf "main\\nrelease\\n"\n[ "$1 $2" = "__complete tasks" ] && printf "npm-test-4kd2\\nnpm-ci-b2x9\\n" | grep -vxF "$3"\n',
        { mode: 0o755 },
      );
      writeFileSync(join(dir, 'script'), await script('bash'));
      const words = line.split(' ');
      const ask =
        'source "$1/script"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _ags; printf "%s\\n" "${COMPREPLY[@]}"';
      const run = spawnSync('bash', ['--norc', '-c', ask, 'bash', dir, ...words], {
        encoding: 'utf8',
        cwd: dir,
        env: { PATH: `${dir}:/usr/bin:/bin`, MY_VARIABLE: '1' },
      });
      expect(run.stderr).toBe('');
      return [...new Set(run.stdout.split('\n'))].filter((word) => word !== '');
    } finally {
      rmSync(dir, { recursive: true });
    }
  }

  test.each<[string, string[]]>([
    ['ags c', ['continue', 'check', 'cleanup', 'config', 'completion']],
    ['ags rm ', ['npm-test-4kd2', 'npm-ci-b2x9']],
    ['ags review npm-t', ['npm-test-4kd2']],
    ['ags restart npm-ci-b2x9 ', ['npm-test-4kd2']],
    ['ags restart npm-test-4kd2', ['npm-test-4kd2']],
    ['ags diff --na', ['--name-only']],
    ['ags exec --workspace ', ['auto', 'overlay', 'copy']],
    ['ags exec --network ', ['on', 'off', 'record']],
    ['ags net l', ['log', 'lock']],
    ['ags exec -e MY_V', ['MY_VARIABLE']],
    ['ags plan --mount scr', ['script']],
    ['ags exec --limit memory=1g --wo', ['--workspace']],
    ['ags exec -- setpri', ['setpriv']],
    ['ags shell setpri', ['setpriv']],
    ['ags exec -- cat scr', ['script']],
    ['ags exec cat --wo', []],
    ['ags completion ', ['bash', 'zsh', 'fish']],
    ['ags start -a c', ['claude', 'codex']],
    ['ags fork npm-ci-b2x9 --agent q', ['qwen']],
    ['ags merge npm-ci-b2x9 --into m', ['main']],
    ['ags config network.a', ['network.allow', 'network.addresses', 'network.askSeconds']],
    ['ags config pa', ['path']],
    ['ags help exi', ['exit-codes']],
    ['ags list x', []],
    ['ags open npm-t', ['npm-test-4kd2']],
    ['ags exec --in npm-c', ['npm-ci-b2x9']],
    ['ags start goal --agent q', ['qwen']],
  ])('bash: "%s" is completed to %j', async (line, words) => {
    expect(await offered(line)).toEqual(words);
  });

  test.each(['bash', 'zsh', 'fish'])(
    'the script for %s has every command and option, and explains its installation',
    async (shell) => {
      const text = await script(shell);
      for (const [name, , verb] of verbs) {
        expect(text).toContain(name);
        for (const option of Object.keys(verb.options))
          expect(text).toContain(shell === 'fish' ? `-l ${option}` : `--${option}`);
      }
      expect(text).toContain(`#   ags completion ${shell} > ~/`);
    },
  );

  test('the script for zsh describes further arguments of each command, so that options after them are completed', async () => {
    const commands = (await script('zsh')).split('\n').filter((line) => line.includes(') _arguments -s -S'));
    expect(commands.length).toBeGreaterThan(Object.keys(VERBS).length);
    expect(commands.filter((line) => !line.includes("'*"))).toEqual([]);
  });

  test('task names are the tasks of the directory, and nothing else in it', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'ags-state-'));
    try {
      expect(await output((ctx) => completeWords(['tasks'], ctx), { stateDir })).toBe('');
      const { id } = createTask(
        stateDir,
        () => 'npm-test-4kd2',
        () => ({ task: {} as TaskFile, run: {} as RunFile }),
      );
      writeFileSync(join(stateDir, 'tasks/.removing-x'), '');
      expect(await output((ctx) => completeWords(['tasks'], ctx), { stateDir })).toBe(`${id}\n`);
      expect(await output((ctx) => completeWords(['tasks', 'other', id], ctx), { stateDir })).toBe('');
      expect(await output((ctx) => completeWords(['other'], ctx), { stateDir })).toBe('');
    } finally {
      rmSync(stateDir, { recursive: true });
    }
  });

  test('another shell is an error', async () => {
    await expect(completion.run({ values: {}, positionals: ['tcsh'] }, {} as Context)).rejects.toMatchObject({
      code: 'usage.invalid',
      message: 'Which shell: bash, zsh or fish?',
    });
  });
});

describe('columns', () => {
  test('are as wide as they appear: wide characters count twice, colours and combining marks not at all', () => {
    const red = (text: string): string => `\u001b[31m${text}\u001b[0m`;
    expect(
      table([
        ['日本', 'a'],
        [{ text: 'e\u0301', paint: red }, 'b'],
        ['x', ''],
      ]),
    ).toBe('日本  a\n\u001b[31me\u0301\u001b[0m     b\nx\n');
    expect(
      table(
        [
          [{ text: '1', right: true }, 'a'],
          [{ text: '100', right: true }, 'b'],
        ],
        { indent: 2, gap: 1 },
      ),
    ).toBe('    1 a\n  100 b\n');
  });

  test('show control characters instead of sending them to the terminal', () => {
    expect(table([['a\u001b[2J', 'b\nc']])).toBe('a\\x1b[2J  b\\nc\n');
  });

  test('are cut and wrapped at the right place', () => {
    expect([cut('abcdef', 6), cut('abcdef', 5), cut('日本語', 5), cut('', 0)]).toEqual([
      'abcdef',
      'abcd…',
      '日本…',
      '',
    ]);
    expect(wrap('one two three\n\nfour', { width: 9, indent: 2 })).toBe('  one two\n  three\n\n  four\n');
    expect(shellLine(['npm', 'run', "it's"])).toBe("npm run 'it'\\''s'");
    expect([0, 59_999, 60_000, 7_200_000, 172_800_000].map(age)).toEqual(['0s', '59s', '1m', '2h', '2d']);
  });
});
