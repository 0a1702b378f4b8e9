// scripts/check-perl.mjs: checks our Perl programs as they are run (see src/lib/perl.ts), with `perl -c -w` and the rules below.
// A line may break a rule if the comment above it says why: "# allowed (<rule>): <reason>".
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { root } from './setup.mjs';

const SRC = join(root, 'src');
const INTERPRETER = readFileSync(join(SRC, 'sandbox/spec/interpreter.ts'), 'utf8');
// In an image a program has the modules that interpreter.ts copies, and those of every Perl.
const MODULES = /const MODULES = \[(.*)\];/.exec(INTERPRETER)[1].match(/[\w:]+/g);
const ALWAYS = ['strict', 'warnings'];
/** Programs that run with the sandbox's complete Perl, and their additional modules. */
const MORE_MODULES = { 'sandbox/perl/net-test.pl': ['Time::HiRes'], 'attack/perl/helpers.pl': ['Fcntl'] };
/** Programs that run attempts as text: strictness would apply to the attempts, and warnings would be read as their answers. */
const LOOSE = ['attack/perl/batch.pl', 'attack/perl/helpers.pl'];
/** Loading `warnings` adds 1 ms to every start of a sandbox, a third of Perl's own start. */
const WITHOUT_WARNINGS = ['sandbox/perl/launcher.pl'];

/** Rules for each line of code, without its comments. */
const RULES = [
  [
    'shell',
    /`|(?<![$@%\w])qx\b|(?<![$@%\w])(?:system|exec)\s*\(?\s*(?:"[^"]*"|'[^']*'|\$\w+)\s*\)?\s*(?:;|$|\}|or\b|\|\|)/,
    'a shell reads it: pass a list',
  ],
  [
    'open',
    /(?<![$@%\w])open\s*\(?\s*(?:my\s+)?[$\w{}>[\]-]+\s*(?:,\s*(?:"[^"]*"|'[^']*'|\$\w+)\s*)?(?:\)|;|\bor\b|\|\|)/,
    'the mode is an argument of its own',
  ],
  ['eval', /(?<![$@%\w])eval\b(?!\s*\{)/, 'text is never run as a program'],
];

const files = readdirSync(SRC, { recursive: true })
  .filter((file) => file.endsWith('.pl'))
  .toSorted((a, b) => (a < b ? -1 : 1));
const texts = new Map(files.map((file) => [file, readFileSync(join(SRC, file), 'utf8')]));
const parts = new Set([...texts].flatMap(([file, text]) => included(file, text)));
const wrong = [...texts].flatMap(([file, text]) => [
  ...look(file, text).map((what) => `src/${file}: ${what}`),
  ...(parts.has(file) ? [] : compile(file)),
]);
for (const line of wrong) process.stdout.write(`${line}\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;

function look(file, text) {
  const lines = text.split('\n');
  const own = MORE_MODULES[file] ?? [];
  const isLoose = parts.has(file) || LOOSE.includes(file);
  const missing = (isThere, what) => (isThere ? [] : [`1: it lacks ${what}`]);
  return [
    ...missing(text.startsWith(`# ${basename(file)}: `), 'its name and what it is for, in the first line'),
    ...missing(/^# Always: /m.test(text), 'what must always hold: "# Always: ..."'),
    ...missing(isLoose || /^use strict;/m.test(text), '"use strict"'),
    ...missing(isLoose || WITHOUT_WARNINGS.includes(file) || /\buse warnings;/.test(text), '"use warnings"'),
    ...lines.flatMap((line, at) => [
      ...(line.length > 130 ? [`${at + 1}: longer than 130 columns`] : []),
      // lib/perl.ts removes lines that begin with "#", so no string may contain one.
      ...(/<<[~"'A-Z]/.test(line) ? [`${at + 1}: a here-document`] : []),
      ...(/[^\t\x20-\x7e]/.test(line) ? [`${at + 1}: not ASCII`] : []),
      ...(/^\s*#/.test(line) ? [] : check(line, at, lines[at - 1] ?? '', own)),
    ]),
  ];
}

function check(line, at, above, own) {
  const allowed = /^\s*# allowed \((\w+)\): \S/.exec(above)?.[1];
  const broken = RULES.filter(([name, pattern]) => name !== allowed && pattern.test(line));
  const modules = [...line.matchAll(/\b(?:use|require)\s+([A-Za-z][\w:]*)/g)].map(([, name]) => name);
  const unknown = modules.filter((name) => ![...ALWAYS, ...MODULES, ...own].includes(name));
  return [
    ...broken.map(([name, , why]) => `${at + 1}: ${name}: ${why}`),
    ...unknown.map((name) => `${at + 1}: ${name} is not among the modules of src/sandbox/spec/interpreter.ts`),
  ];
}

function compile(file) {
  const taint = /perl -T /.test(texts.get(file)) ? ['-T'] : [];
  const { status, stderr } = spawnSync('perl', ['-c', '-w', ...taint, '-'], { input: joined(file), encoding: 'utf8' });
  const said = stderr.split('\n').filter((line) => line !== '' && line !== '- syntax OK');
  return status === 0 && said.length === 0
    ? []
    : [`src/${file}, joined with its parts:`, ...said.map((line) => `  ${line}`)];
}

function included(file, text) {
  return [...text.matchAll(/^# include (\S+)$/gm)].map(([, part]) => join(dirname(file), part));
}

/** As in src/lib/perl.ts, but with comments. */
function joined(file) {
  return texts.get(file).replaceAll(/^# include (\S+)\n/gm, (_, part) => joined(join(dirname(file), part)));
}
