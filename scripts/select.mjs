// scripts/select.mjs: the test files that a command runs, their callers, and the report about files that it does not run.
import { relative } from 'node:path';

/** `args` of the command line: words in a file's path select files of any tier; the rest goes to vitest, unless it looks like a file. */
export function splitArgs(args, files) {
  const isFile = (word) => !word.startsWith('-') && files.some((file) => file.includes(normal(word)));
  const options = args.filter((word) => !isFile(word));
  return {
    named: args.filter(isFile).map(normal),
    options,
    unknown: options.filter((word) => /^test\/|\.ts$/.test(word)),
  };
}

const normal = (word) => relative('', word);

/** Takes files as needs.mjs describes them. `npm run test:all` also runs what `npm test` skips in the core. */
export function selectFiles(described, { tier, named, isRoot }) {
  if (named.length > 0) return described.filter(({ file }) => named.some((word) => file.includes(word)));
  const isLeftOut = ({ needs, uses, callers }) =>
    (isRoot && callers) || [...needs, ...uses].some((name) => !['sandbox', 'low-ports'].includes(name));
  return described.filter((one) => one.tier === tier || (tier === 'full' && one.tier === 'core' && isLeftOut(one)));
}

/** One line per missing component, with the command that runs its tests. */
export function skipLines(leftOut, skippedTests) {
  const groups = new Map();
  const add = (why, file, unit) => {
    const group = groups.get(why) ?? { files: new Set(), count: 0, unit };
    group.files.add(file);
    group.count += 1;
    groups.set(why, group);
  };
  for (const { file, missing } of leftOut) add(`needs ${missing.join(', ')}`, file, 'file');
  for (const { file, why } of skippedTests) add(why, file, 'test');
  return [...groups].map(([why, { files, count, unit }]) => {
    const script = why === 'needs root' ? 'sudo npm test' : 'npm run test:all';
    const command = files.size === 1 ? `${script} -- ${[...files][0]}` : script;
    return `skipped: ${count} ${unit}${count === 1 ? '' : 's'} (${why}); to try: ${command}`;
  });
}

/** The last line of every run. */
export const countsLine = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed, ${skipped} skipped`;

export function addCounts(all) {
  const sum = (what) => all.reduce((total, one) => total + one[what], 0);
  return { passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') };
}
