// test/attacks/mutation/pipeline-mutants.ts: the protections of the pipeline that brings out an agent's work, and of sandbox setup: each row
// removes one, and names the attempts that must notice: of the table of attacks, or of pipeline-parts-*.ts and sandbox-parts.ts.
import type { Piece } from './mutated-source.ts';
import { mutantsOf } from './parts.ts';
import type { FILE_PARTS } from './pipeline-parts-files.ts';
import type { GIT_PARTS } from './pipeline-parts-git.ts';
import type { SANDBOX_PARTS } from './sandbox-parts.ts';

const { one, off } = mutantsOf<keyof typeof FILE_PARTS | keyof typeof GIT_PARTS | keyof typeof SANDBOX_PARTS>();

const ETC = 'sandbox/spec/etc-copy.ts';
const NOFOLLOW: Piece = [
  'lib/descend.ts',
  'const PIN = O_PATH | O_DIRECTORY | O_NOFOLLOW;',
  'const PIN = O_PATH | O_DIRECTORY;',
];

/** Backs up the options of a command: git reads no settings of the user. */
const ANY_HOME: readonly Piece[] = [
  ['git/host-git.ts', "HOME: '/nonexistent'", "HOME: process.env['HOME'] ?? ''"],
  ['git/host-git.ts', "GIT_CONFIG_GLOBAL: '/dev/null',\n", ''],
];

// One row for each mutant, as a table.
// oxfmt-ignore
export const PIPELINE_PART_MUTANTS = [
  one('names', 'no name is empty, and no path absolute', ['review/names.ts', "if (path === '') return …; if (path.startsWith('/')) return …;", ''], ['review/names.ts', "if (name === '') return …;", '']),
  off('names', 'review/names.ts', 'no NUL in a name', "if (path.includes('\\0')) return …;"),
  off('names', 'review/names.ts', 'names are text', 'if (/\\p{Cs}/u.test(path)) return …;'),
  off('names', 'review/names.ts', 'paths have an end', 'if (Buffer.byteLength(path) > 4096) return …;'),
  off('names', 'review/names.ts', 'names have an end', 'if (Buffer.byteLength(name) > 255) return …;'),
  off('names', 'review/names.ts', 'no way up', "if (part === '.' || part === '..') return …;"),
  off('names', 'review/names.ts', 'a backslash separates', "name.split('\\\\')", '[name]'),
  off('names', 'review/names.ts', 'nothing passes for .git', '/^(?:\\.git|git~\\d+)$/', '/^\\.git$/'),
  off('names', 'review/names.ts', 'letters of any case', 'return name.toLowerCase();', 'return name;'),
  off('names', 'review/names.ts', 'invisible characters', ".replace(/[\\p{Cf}\\p{Default_Ignorable_Code_Point}]/gu, '')"),
  off('names', 'review/names.ts', 'letters of several forms', '.toUpperCase()'),
  one('names', 'characters that stand for another', ['review/names.ts', "const folded = name\n    .normalize('NFKC')", 'const folded = name'], ['review/names.ts', ".toLowerCase()\n    .normalize('NFKC');", '.toLowerCase();']),
  off('names', 'review/names.ts', 'streams', ".replace(/(?<=.):.*$/s, '')"),
  off('names', 'review/names.ts', 'dots and blanks at the end', ".replace(/[. ]+$/, '')"),
  off('words', 'lib/sanitize.ts', 'names are shown, not obeyed', 'return LINE_UNSAFE.test(text) ? text.replace(LINE_UNSAFE_ALL, escapeOf) : text;', 'return text;'),
  off('words', 'lib/sanitize.ts', 'texts are shown, not obeyed', 'return whole(escapeOf(piece), piece);', 'return whole(piece, piece);'),
  off('words', 'lib/sanitize.ts', 'a text that is harmless at a glance is', '!STREAM_UNSAFE.test(chunk) && fits(chunk)', 'fits(chunk)'),
  off('words', 'lib/sanitize.ts', 'lines have an end', 'options.maxLine ?? 4096', '1e9'),
  off('words', 'lib/sanitize.ts', 'colours have an end', '[0-9;:]{0,64}', '[0-9;:]*'),
  one('links', 'no link is entered', NOFOLLOW),
  off('links', 'lib/descend.ts', 'no path leads through a link', "!== path) throw failure('ELOOP'", "=== '') throw failure('ELOOP'"),
  off('links', 'lib/descend.ts', 'no link is read', 'O_RDONLY | O_NOFOLLOW | O_NONBLOCK', 'O_RDONLY | O_NONBLOCK'),
  one('links', 'no link is written through', ['lib/descend.ts', 'O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW', 'O_WRONLY | O_CREAT']),
  off('links', 'lib/descend.ts', 'only files are read', "if (!stats.isFile()) throw failure('EINVAL', …, name);"),
  off('links', 'lib/descend.ts', 'names are plain', "if (dots || bytes.includes(0x2f) || bytes.includes(0)) throw failure('EINVAL', …, String(name));"),
  off('apply', 'review/apply.ts', 'nothing is written into .git', 'inspectName(input.op.path).refuse ?? whyTargetRefused(input.op)', 'whyTargetRefused(input.op)'),
  one('apply', 'nothing is written through a link', ['review/host.ts', 'if (stats.isSymbolicLink())', "if (path === '')"], ['review/host.ts', 'if (!stats.isDirectory()) return', "if (path === '') return"], NOFOLLOW),
  off('apply', 'review/apply.ts', 'only what was shown is replaced', 'if (changed !== null) return { changed };'),
  off('apply', 'review/apply.ts', 'no set-user-id bit is kept', 'chmod: chmod & 0o777', 'chmod'),
  off('journal', 'review/journal.ts', 'only temporary files are cleaned up', '!file.steps.every((step) => TEMPORARY.test(step.temporary))', 'file.steps.length < 0'),
  off('upper', 'review/upper.ts', 'no .git is listed', "if (name.toString('latin1').toLowerCase() === '.git') return 'inside .git';"),
  off('upper', 'review/upper.ts', 'names that are listed are text', 'return isUtf8(name) ? null : …;', 'return null;'),
  off('upper', 'review/upper.ts', 'pipes and sockets are not listed', 'if (stats.isFile() || stats.isSymbolicLink()) return null;', 'return null;'),
  off('upper', 'review/upper.ts', 'what its owner may not read is not listed', 'if (stats.isFile() && (mode & 0o400) === 0) {', 'if (mode < 0) {'),
  off('upper', 'review/upper.ts', 'what its owner may not enter is not listed', 'return mode !== undefined && (mode & 0o500n) === 0o500n;', 'return mode !== undefined;'),
  off('upper', 'review/upper.ts', 'modes are permissions', 'Number(stats.mode) & 0o777,', 'Number(stats.mode) & 0o7777,'),
  off('upper', 'review/upper.ts', 'a limit on entries', 'if (listed.length > left) throw', 'if (listed.length < 0) throw'),
  off('upper', 'review/upper.ts', 'a limit on depth', 'if (from.depth > limits.depth) throw', 'if (from.depth < 0) throw'),
  one('upper', 'no link of the user is entered to delete', ['review/upper.ts', 'using lower = below?.isDirectory() ?', 'using lower = below ?'], NOFOLLOW),
  off('long paths', 'review/upper.ts', 'paths that can be opened', 'if (Buffer.byteLength(from.at) + 1 + longest > PATH_BYTES)', 'if (longest < 0)'),
  off('marks', 'review/opaque.ts', 'marks that are known', 'if (HARMLESS.test(attribute)) return false;', 'return false;'),
  off('marks', 'review/opaque.ts', 'records that are known', 'else if (!PLAIN_KEYS.has(key)) throw', "else if (key === '') throw"),
  off('marks', 'review/opaque.ts', 'each directory once', 'if (answered.has(path)) throw', "if (path === '') throw"),
  off('marks', 'review/opaque.ts', 'those that were asked for', 'asked.length !== answered.size || ', ''),
  off('marks', 'review/opaque.ts', 'directories alone', "if (header.type !== '5' || header.bytes !== 0) throw", "if (header.bytes < 0) throw"),
  off('marks', 'review/opaque.ts', 'no way up in an answer', "if (names.some((name) => ['', '.', '..'].includes(name))) throw", 'if (names.length < 0) throw'),
  off('marks', 'review/opaque.ts', 'the whole answer', 'if (at + BLOCK > archive.length) throw notUnderstood(…);', 'if (at + BLOCK > archive.length) return Buffer.alloc(BLOCK);'),
  one('lanes', 'rules hold in any spelling', ['review/lanes.ts', 'const now = rulesFor(foldPath(path));', 'const now = rulesFor(path);']),
  off('lanes', 'review/lanes.ts', 'what it was called before counts', "from === undefined ? now : rulesFor(foldPath(from))", 'now'),
  off('lanes', 'review/content-facts.ts', 'programs are pointed out', "if (after.mode === '100755' && before?.mode !== '100755') return [host(…)];", "if (after.mode === '100755' && before?.mode !== '100755') return [];"),
  off('lanes', 'review/content-facts.ts', 'links are judged', "if (after.mode === '120000') return linkFacts(path, before, after);", "if (after.mode === '120000') return [];"),
  off('lanes', 'review/content-facts.ts', 'what cannot be read is not harmless', 'mediaRule(foldPath(path)).length > 0 ? look(unread) : host(unread)', 'mediaRule(foldPath(path)).length >= 0 ? look(unread) : host(unread)'),
  off('lanes', 'review/content-facts.ts', 'scripts are pointed out', 'return []; return [host(…)]; }', 'return []; return []; }'),
  off('lanes', 'review/fact.ts', 'the most serious fact decides', 'RANK[a.level] - RANK[b.level]', 'RANK[b.level] - RANK[a.level]'),
  off('selection', 'review/selection.ts', 'a conflict is never accepted', "change.conflict !== 'conflicts' && ", ''),
  off('selection', 'review/selection.ts', 'files that run later are named one by one', "(change.lane === 'inert' || named)", 'true'),
  off('index', 'results/agent-index.ts', 'no repository in the repository', "refused.add(textOf(path), was?.mode === GITLINK ? SUBMODULE : REPOSITORY);\n    } else if", "set.delete(path);\n    } else if"),
  off('index', 'results/agent-index.ts', 'no name that is no text', "if (!isUtf8(Buffer.from(path, 'latin1'))) return …;"),
  off('index', 'results/agent-index.ts', 'no name that passes for .git', 'return inspectName(text).refuse ?? (', 'return ('),
  off('index', 'results/agent-index.ts', 'no notes of an agent', 'isScratch(text) ? SCRATCH : null', 'null'),
  off('index', 'results/agent-index.ts', 'nothing of a submodule', 'submodule === undefined ? problemOf(path, isScratch) : SUBMODULE', 'problemOf(path, isScratch)'),
  off('texts', 'git/commit-text.ts', 'no control characters in commit messages', 'if (/[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]/.test(text)) return null;'),
  off('texts', 'git/commit-text.ts', 'commits are text, with an end', 'if (!isUtf8(bytes) || bytes.length > 256 * 1024) return null;'),
  off('texts', 'git/commit-text.ts', 'headers that are known', ')\\n$', ')\\n'),
  off('texts', 'git/commit-text.ts', 'ags alone writes the trailers of ags', '.filter((line) => !/^ags-(goal|task|run|agent):/i.test(line))'),
  off('texts', 'git/commit-text.ts', 'no control characters in messages of ags', '.replaceAll(/[^\\P{Cc}\\n\\t]|[\\p{Cs}]/gu, \'\')'),
  off('texts', 'git/commit-text.ts', 'one line is one line', ".replaceAll(/[\\p{Cc}\\p{Zl}\\p{Zp}]+/gu, ' ')"),
  off('texts', 'git/commit-text.ts', 'a line has no unseen signs', ".replaceAll(/[\\p{Cf}\\p{Cs}]/gu, '')"),
  off('history', 'git/brought.ts', 'history builds on the base', 'if (!(await isAncestor(staging, base, tip, limits)))', "if (base === '')"),
  off('history', 'git/brought.ts', 'a limit on commits', ' || ids.length > limits.commits)', ')'),
  off('history', 'git/brought.ts', 'commits are ordinary ones', 'if (parts === null) return no(…);'),
  off('history', 'git/brought.ts', 'no commit ever had a wrong file', ' || wrong(path, mode))', ')'),
  off('history', 'git/brought.ts', 'no commit ever had a name that is no text', 'path === null || wrong(path, mode)', "wrong(path ?? '', mode)"),
  off('whole', 'git/brought.ts', 'nothing is missing', 'if (listed.exitCode !== 0) throw', 'if (listed.exitCode === 124) throw'),
  off('whole', 'git/brought.ts', 'a limit on objects', 'if (ids.length > limits.objects) throw', 'if (ids.length < 0) throw'),
  off('whole', 'git/brought.ts', 'files have an end', 'if (bytes.some((size) => size > limits.fileBytes))', 'if (bytes.length < 0)'),
  off('whole', 'git/brought.ts', 'all together has an end', '> limits.totalBytes)', '< 0)'),
  off('whole', 'git/brought.ts', 'little memory', "'prlimit', `--data=${limits.memoryBytes}`, '--', 'git'", "'git'"),
  off('whole', 'git/brought.ts', 'a deadline', 'timeoutMs: limits.timeoutMs,\n    ...(input', '...(input'),
  off('packs', 'git/staging.ts', 'objects are checked', "'--strict', "),
  off('packs', 'git/staging.ts', 'a limit on bytes', ', `--max-input-size=${maxBytes}`'),
  off('packs', 'git/staging.ts', 'a limit on objects in a pack', 'if (head.readUInt32BE(8) > most) onMore();'),
  off('packs', 'git/staging.ts', 'little memory for a pack', "spawn('prlimit', [`--data=${MEMORY_BYTES}`, '--', ...index]", "spawn('env', index"),
  off('packs', 'git/staging.ts', 'a pack that is refused leaves nothing', 'if (!before.has(name)) rmSync(', "if (name === '') rmSync("),
  off('answers', 'results/capture.ts', 'what was asked for, and nothing else', 'if (wanted.filter(isWanted).length !== found.size)', 'if (found.size === 0)'),
  off('answers', 'results/capture.ts', 'of the kind that was seen', "(type === 'symlink' ? taken.mode === '120000' : /^100(644|755)$/.test(taken.mode))", 'type.length > 0'),
  off('answers', 'results/capture.ts', 'of the size that was seen', 'taken.bytes === bytes &&', ''),
  off('differences', 'git/staging.ts', 'everything is shown as text', "'--text',\n"),
  one('strangers', 'no settings of the user are read', ...ANY_HOME),
  one('differences', 'nothing but git compares', ['git/staging.ts', "'--no-ext-diff',\n    '--no-textconv',\n    '--text',", "'--text',"], ...ANY_HOME),
  one('differences', 'no colours', ['git/staging.ts', "'--no-color',\n", ''], ...ANY_HOME),
  off('paths', 'git/host-tree.ts', 'a name ends no command', ".replaceAll('\\n', '\\\\n')"),
  off('paths', 'git/host-tree.ts', 'a name ends no name', '.replaceAll(/["\\\\]/g, (c) => `\\\\${c}`)'),
  off('stores', 'git/object-stores.ts', 'no objects of another project', 'throw foreignStore(gitDir, path);', 'void path;'),
  off('stores', 'git/object-stores.ts', 'only stores pass for stores', 'lstatSync(path).isDirectory() : isObjectStore(path)', 'lstatSync(path).isDirectory() : true'),
  off('belonging', 'git/belonging.ts', 'a repository knows its work tree', 'gitDir !== dotGit && !isNamed(claim)', 'gitDir !== dotGit && false'),
  off('belonging', 'git/belonging.ts', 'a repository knows its worktrees', 'gitDir !== commonDir ? !isLinked(claim)', 'gitDir !== commonDir ? false'),
  off('belonging', 'git/belonging.ts', 'branches are its own', "if (target !== null && !target.startsWith(`${base}/`))", 'if (target === base)'),
  one('belonging', 'a work tree leads to its repository', ['git/belonging.ts', 'gitDir !== dotGit)) throw elsewhere(claim);', 'gitDir !== dotGit)) return;']),
  one('copies', 'no link is copied', ['git/copy-real.ts', 'return lstatSync(join(from, name), { throwIfNoEntry: false });', 'return statSync(join(from, name), { throwIfNoEntry: false });'], ['git/copy-real.ts', 'import { constants, copyFileSync, lstatSync,', 'import { statSync, constants, copyFileSync, lstatSync,']),
  off('copies', 'git/copy-real.ts', 'no directory on the way is a link', '?.isDirectory() !== true)\n      return undefined;', ' === null)\n      return undefined;'),
  off('settings', 'git/private-git.ts', 'only harmless settings go in', 'kept.test(key) && but?.test(key) !== true', 'but?.test(key) !== true'),
  off('settings', 'git/private-git.ts', 'a setting is one setting', ".replaceAll('\"', '\\\\\"').replaceAll('\\n', '\\\\n')"),
  off('programs', 'git/host-git.ts', 'no hook', "'core.hooksPath=/dev/null'", "'core.nothing=x'"),
  off('programs', 'git/host-git.ts', 'no monitor', "'core.fsmonitor=false'", "'core.nothing=x'"),
  one('programs', 'nothing is fetched', ['git/host-git.ts', "GIT_ALLOW_PROTOCOL: 'none',", ''], ['git/host-git.ts', "GIT_NO_LAZY_FETCH: '1',", ''], ['git/host-git.ts', "'protocol.allow=never'", "'core.nothing=x'"]),
  off('programs', 'git/host-git.ts', 'no commit stands for another', "GIT_NO_REPLACE_OBJECTS: '1',"),
  off('programs', 'git/owner-git.ts', 'a branch moves from where it was', 'ref, to ?? zero, from ?? zero]', 'ref, to ?? zero]'),
  off('mount points', 'sandbox/io/prepare-mounts.ts', 'nothing is made behind a link', 'else if (directory ? !stat.isDirectory() : !stat.isFile()) throw inTheWay(mount.to);'),
  off('secrets', 'sandbox/spec/hidden-scan.ts', 'sockets of the project are hidden', "if (entry.isSocket()) hits.push({ path, directory: false, why: 'socket' });\n    else ", ''),
  off('secrets', 'sandbox/spec/hidden-scan.ts', 'a directory that was written is read again', 'record.m !== stat.mtimeMs || record.c !== stat.ctimeMs', 'record.c < 0'),
  off('secrets', 'sandbox/spec/hidden-scan.ts', 'whatever its time says', ' || record.c !== stat.ctimeMs', ''),
  off('secrets', 'sandbox/spec/hidden-scan.ts', 'other patterns, another reading', 'input.memory?.key === input.key ? input.memory.directories : {}', 'input.memory?.directories ?? {}'),
  off('secrets', 'sandbox/spec/hidden-scan.ts', 'what is young is read again', '< input.nowMs - RACY_MS', '< Infinity'),
  one('settings of the machine', 'no link in /etc is followed', [ETC, 'const stat = lstatSync(from, { throwIfNoEntry: false });', 'const stat = statSync(from, { throwIfNoEntry: false });'], [ETC, '  lstatSync,\n', '  lstatSync,\n  statSync,\n']),
  off('settings of the machine', ETC, 'files and directories of /etc alone', 'else if (stat.isFile()) copyFileSync(from, to);\n    else return;', 'else copyFileSync(from, to);'),
  off('settings of the machine', ETC, 'what is for root alone in /etc stays so', 'copyFileSync(from, to);', 'writeFileSync(to, readFileSync(from));'),
  off('settings of the machine', ETC, 'what has changed in /etc is copied again', 'changedAt(path) === ctimeMs', 'ctimeMs !== null'),
  off('settings of the machine', ETC, 'each has its own names', 'copies.find((one) => one.key === key)', 'copies[0]'),
  off('settings of the machine', ETC, 'no copy of /etc is changed in place', "mkdtempSync(join(input.cacheDir, 'etc-'))", "mkdirSync(join(input.cacheDir, 'etc-x'), { recursive: true }) ?? join(input.cacheDir, 'etc-x')"),
  off('settings of the machine', ETC, 'nothing is written through a link of /etc', '  for (const [name, content] of', '  for (const name of input.list(input.patterns)) copy(join(etcDir, name), join(directory, name), seen);\n  for (const [name, content] of'),
  off('settings of the machine', ETC, 'names of our own stay', ' || (there !== undefined && !(there.isDirectory() && stat.isDirectory()))'),
  off('listeners', 'sandbox/io/descriptors.ts', 'no program inside can replace a listener', "if (protocol === 'udp' && port >= 1024)", "if (protocol === 'udp' && port < 0)"),
];

/** In place of an attempt: none of the agent's work comes out any more. */
export const NOTHING_COMES = '(nothing comes out)';

export interface PipelineMutant {
  readonly name: string;
  /** The attempts that must notice. */
  readonly attacks: readonly string[];
  /** Several if one backs another up. */
  readonly pieces: readonly Piece[];
}

/** The mutants of a group share one run of the pipeline: none affects the attempts of another. */
// One row for each mutant, as a table.
// oxfmt-ignore
export const PIPELINE_GROUPS: readonly (readonly PipelineMutant[])[] = [
  [
    { name: 'files that run later are named one by one', attacks: ['merge-links-out', 'merge-runs-later', 'merge-agent-settings'], pieces: [['review/selection.ts', "(change.lane === 'inert' || named)", 'true']] },
    { name: 'names are shown, not obeyed', attacks: ['merge-terminal-names'], pieces: [['lib/sanitize.ts', 'return LINE_UNSAFE.test(text) ? text.replace(LINE_UNSAFE_ALL, escapeOf) : text;', 'return text;']] },
    { name: 'texts are shown, not obeyed', attacks: ['merge-terminal-text'], pieces: [['lib/sanitize.ts', 'return whole(escapeOf(piece), piece);', 'return whole(piece, piece);']] },
    { name: 'no attribute of an agent counts', attacks: ['git-changed-bytes'], pieces: [['git/staging.ts', '* -text -filter -ident -working-tree-encoding !diff !merge', '* !diff !merge']] },
  ],
  [
    { name: 'work in progress is not written over', attacks: ['merge-unfinished-work'], pieces: [['results/move-files.ts', 'if (dirty.length > 0)', 'if (dirty.length > 1e9)']] },
    { name: 'no object stands for another', attacks: ['git-replaced-objects'], pieces: [['results/agent-tree.ts', "GIT_NO_REPLACE_OBJECTS: '1',", '']] },
    { name: 'no history with a file that may not come out', attacks: ['git-nested-repository'], pieces: [['results/agent-tree.ts', '!/^(100644|100755|120000)$/.test(mode)', "mode === ''"]] },
  ],
  [
    { name: 'objects are checked, and the names in them', attacks: ['git-tree-names'], pieces: [['git/staging.ts', "'index-pack', '--strict',", "'index-pack',"], ['git/brought.ts', 'path === null || wrong(path, mode)', 'wrong === null']] },
  ],
  [
    { name: 'no setting of an agent counts', attacks: [NOTHING_COMES], pieces: [['git/staging.ts', '* -text -filter -ident', '* -text -ident'], ['results/agent-tree.ts', '/HEAD "$GIT_DIR/HEAD"', '/HEAD ${AGENT_GIT}/config "$GIT_DIR/"']] },
  ],
  [
    { name: 'nothing waits for a pipe', attacks: [NOTHING_COMES], pieces: [['run/inspection.ts', '(question.cover ?? []).map(', '[].map('], ['run/inspection.ts', 'question.deadlineMs ?? DEADLINE_MS', '3000']] },
  ],
];
