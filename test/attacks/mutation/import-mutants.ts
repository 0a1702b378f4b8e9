// test/attacks/mutation/import-mutants.ts: the protections of importing a task: each row removes one, and names the attempt of
// import-parts-*.ts that must notice.
import type { IMPORT_FILE_PARTS } from './import-parts-file.ts';
import type { IMPORT_WORK_PARTS } from './import-parts-work.ts';
import { SOURCE, type Piece } from './mutated-source.ts';
import { mutantsOf, type PartMutant } from './parts.ts';

type Part = keyof typeof IMPORT_FILE_PARTS | keyof typeof IMPORT_WORK_PARTS;
type Mutant = PartMutant<Part>;

const { one, off } = mutantsOf<Part>();

const [ARCHIVE, TREE, READ] = ['lib/archive.ts', 'lib/tree-archive.ts', 'transfer/import-read.ts'];
const [EXPORT, EVENT] = ['protocol/export.ts', 'protocol/carried-event.ts'];
const [OBJECTS, DATA, PLACE] = ['transfer/import.ts', 'transfer/import-data.ts', 'transfer/import-place.ts'];
const [RULES, ASKS, TEXT] = ['transfer/carried-rules.ts', 'config/asks.ts', 'transfer/portable-text.ts'];
const [IMPORT, IMPORTED] = ['transfer/import.ts', 'transfer/imported-task.ts'];

/** Backs up the search for missing objects: git's own check. */
const STRICT: Piece = ['git/staging/staging.ts', "'--strict', ", ''];
/** Backs up the check of a branch's place: git moves it only from there. */
const ANYWHERE: Piece = ['git/owner-git.ts', 'ref, to ?? zero, from ?? zero]', 'ref, to ?? zero]'];

// One row for each mutant, as a table.
// oxfmt-ignore
const BY_HAND: readonly Mutant[] = [
  // The archive.
  off('archive', ARCHIVE, 'names come from a list', '!isKnown(name) || '),
  off('archive', ARCHIVE, 'headers are ours, byte for byte', ' || !headerOf({ name, bytes }).equals(header)'),
  off('archive', ARCHIVE, 'a member is there once', 'if (found.has(name)) return { problem: … };'),
  off('archive', ARCHIVE, 'nothing follows the end', 'at + 2 * BLOCK === size && '),
  off('archive', ARCHIVE, 'an end is two blocks', '=== size && header.every((byte) => byte === 0);', '=== size;'),
  one('archive', 'an archive is whole', [ARCHIVE, 'if (at + 2 * BLOCK > size) return { problem: … };', ''], [ARCHIVE, 'into.fill(0xff, done);', 'into.fill(0, done);'], [ARCHIVE, 'at + 2 * BLOCK === size && ', '']),
  // Trees.
  off('trees', TREE, 'zeros have an end', 'if (zeros > MOST_ZEROS) throw', 'if (zeros < 0) throw'),
  off('trees', TREE, 'nothing follows the end of a tree', 'if (zeros > 0) throw new TreeProblem(…);'),
  off('trees', TREE, 'a tree begins with its directory', 'if (found.entries === 0 && entry.path.length > 0) throw', 'if (found.entries < 0) throw'),
  off('trees', TREE, 'a limit on files', 'if (found.entries > limits.entries) throw', 'if (found.entries < 0) throw'),
  off('trees', TREE, 'a limit on bytes', 'if (found.bytes > limits.bytes) throw', 'if (found.bytes < 0) throw'),
  off('trees', TREE, 'nothing hides behind a file', 'if (part.some((byte) => byte !== 0)) throw', 'if (part.length < 0) throw'),
  off('trees', TREE, 'a tree ends with its end', 'left + filling + waiting.length > 0 || '),
  off('trees', TREE, 'a tree has an end', ' || zeros < 2'),
  off('trees', TREE, 'headers of a tree are ours, byte for byte', ' || !tarHeader(expected).equals(block)'),
  off('trees', TREE, 'names begin with the directory', "path.shift() !== '.'", 'path.shift() === undefined'),
  off('trees', TREE, 'a limit on depth', 'path.length > MOST_DEPTH ||'),
  off('trees', TREE, 'the directory is one', '(path.length === 0 && !isDirectory) ||'),
  off('trees', TREE, 'names are plain', 'path.some((part) => !isPlain(part))', 'false'),
  off('trees', TREE, 'no name is empty', "part !== '' && "),
  off('trees', TREE, 'no name stays', "part !== '.' && "),
  off('trees', TREE, 'no name leads up', "part !== '..' && "),
  off('trees', TREE, 'no control characters in names', ' && !/[\\u0000-\\u001f\\u007f]/.test(part)'),
  // The manifest; each of its bounds is below.
  off('schema', EXPORT, 'data has the name of a service', 'service !== undefined && SERVICE_NAME.test(service)', 'service !== undefined'),
  off('schema', EXPORT, 'branches are of plain signs', '[\\u0000- \\u007f~^:?*[\\\\]|'),
  off('schema', EXPORT, 'branches lead nowhere', '|\\.\\.|', '|'),
  off('schema', EXPORT, 'branches name no earlier place', '|@\\{|', '|'),
  off('schema', EXPORT, 'branches have no empty part', '|\\/\\/|', '|'),
  off('schema', EXPORT, 'branches are no options', '|^[-/]|', '|'),
  off('schema', EXPORT, 'branches have an end', '|[/.]$/', '/'),
  off('schema', EXPORT, '"@" is no branch', " || name === '@'"),
  off('schema', EXPORT, 'HEAD is no branch', " || name === 'HEAD'"),
  off('schema', EXPORT, 'no part of a branch is hidden', "!part.startsWith('.') && "),
  off('schema', EXPORT, 'no part of a branch is a lock', " && !part.endsWith('.lock')"),
  // The file.
  off('file', READ, 'only files are read', 'if (fstatSync(fd).isFile()) return fd;', 'if (fstatSync(fd).isFile() || fd > 0) return fd;'),
  off('file', READ, 'the manifest has a form', 'if (parsed.success) return parsed.data;', 'if (parsed.success || format !== undefined) return value as ExportManifest;'),
  one('file', 'each member is listed once', [READ, 'new Set(names).size !== names.length || ', ''], [READ, 'one.name === name)?.sha256)', 'one.name === name)?.sha256 && manifest.members.some((one) => one.name === name))']),
  off('file', READ, 'every member is listed', ' || names.length !== members.size - 1'),
  off('file', READ, 'sizes are true', 'if (members.get(name)?.bytes !== bytes) throw', 'if (bytes < 0) throw'),
  off('file', READ, 'data belongs to a format', '(manifest.services === undefined) !== (manifest.format === 1) ||'),
  off('file', READ, 'data is listed', 'listed.toSorted().join() !== data.toSorted().join()', 'listed.length < 0'),
  off('file', READ, 'ids are of one kind', 'if ([root, base, commit].some((oid) => oid.length !== length)) throw', 'if (length < 0) throw'),
  off('file', READ, 'the work is there if the manifest says so', 'if (members.has(MEMBERS.work) !== (commit !== root)) throw', 'if (commit.length < 0) throw'),
  off('file', READ, 'hashes are true', "if (hash.digest('hex') !== manifest", "if (hash.digest('hex') === manifest.ags + manifest"),
  off('file', READ, 'a limit on unpacked bytes', 'if (bytes > maxBytes) throw', 'if (bytes < 0) throw'),
  off('file', READ, 'a member that cannot be unpacked is refused', "if (String((error as { code?: unknown }).code).startsWith('Z_')) throw refusedFile(…);"),
  off('long words', READ, 'the manifest has an end', 'if (member.bytes > EXPORT_LIMITS.manifestBytes) throw', 'if (member.bytes < 0) throw'),
  off('long words', READ, 'lines have an end', 'createLines(EXPORT_LIMITS.lineBytes, onLine)', 'createLines(2 ** 40, onLine)'),
  // Events.
  off('events', EVENT, 'events have their fields and no others', "z.object({ type: z.literal(type), at: z.iso.datetime(), ...fields })", 'z.looseObject({ type: z.literal(type), at: z.iso.datetime(), ...fields })'),
  off('events', EVENT, 'objects in events have no other fields either', "z.object({ kind: z.literal('command'), command: text })", "z.looseObject({ kind: z.literal('command'), command: text })"),
  off('events', EVENT, 'events have a time', 'at: z.iso.datetime()', 'at: z.any()'),
  off('events', EVENT, 'events are those that ags writes', 'SCHEMAS.get(type)?.safeParse(value)', '(SCHEMAS.get(type) ?? z.looseObject({})).safeParse(value)'),
  off('history', 'transfer/import.ts', 'events are read', 'const event = readCarriedEvent(parse(line));', 'const event = parse(line) as CarriedEvent | null;'),
  off('history', 'transfer/import.ts', 'few events are left out', '    requireFew(dropped);\n  });\n  put(', '  });\n  put('),
  off('history', 'transfer/import.ts', 'decisions are read', 'const decision = CarriedDecision.safeParse(parse(line));', 'const decision = { success: true, data: parse(line) as object };'),
  off('history', 'transfer/import.ts', 'few decisions are left out', '      requireFew(dropped);\n    });\n  } finally', '    });\n  } finally'),
  // Objects.
  off('objects', OBJECTS, 'no name leads elsewhere', 'inspectName(path).refuse !== null || '),
  off('objects', OBJECTS, 'files are files', ' || !/^(100644|100755|120000)$/.test(mode)'),
  one('connections', 'nothing is missing', [OBJECTS, 'await requireWhole(staging, commit, root);', ''], STRICT),
  one('connections', 'nothing is missing in a history', [OBJECTS, 'await requireWhole(gitDir, file.manifest.work.root, null, limits);', ''], STRICT),
  off('objects', OBJECTS, 'commits are those of a task', 'if (!history.keep) throw refusedFile(', 'if (!history.keep && history.why === null) throw refusedFile('),
  off('connections', OBJECTS, 'the base builds on the root', '!(await isAncestor(staging, root, base)) || '),
  off('connections', OBJECTS, 'the work builds on the base', ' || !(await isAncestor(staging, base, commit))'),
  off('objects', OBJECTS, 'what git refuses is refused', "error.code !== 'capture.refused') throw error;", "error.code !== '') throw error;"),
  // Data of services.
  off('data', DATA, 'as many bytes as it says', 'found.bytes !== bytes || '),
  off('data', DATA, 'as many files as it says', ' || found.entries !== entries'),
  off('data', DATA, 'no more than it says', 'readTree({ bytes, entries }, writer)', 'readTree({ bytes: 1e12, entries: 1e12 }, writer)'),
  off('data', DATA, 'data has an end', 'bytes + 1024 * (entries + 24)', '1e12'),
  off('data', DATA, 'names that do not fit are refused', "['EEXIST', 'ENOENT', 'ENOTDIR', 'EINVAL'].includes(errorCode(error) ?? '')", "errorCode(error) === ''"),
  off('data', DATA, 'data is for its owner', 'mkdirSync(path, { mode: 0o700 });', 'mkdirSync(path, { mode: 0o755 });'),
  off('data', DATA, 'directories of data are for their owner', 'parent.mkdirChild(name, 0o700)', 'parent.mkdirChild(name, 0o755)'),
  off('data', DATA, 'files of data are for their owner', '0o700 : 0o600, {', '0o755 : 0o644, {'),
  // The place of the new task.
  off('places', PLACE, 'a new repository is made in an empty place', '(stat.isDirectory() && readdirSync(directory).length === 0)', 'stat.isDirectory()'),
  off('places', PLACE, 'a new repository has a history', 'if (!given.complete) throw needsHistory(directory, work.root);'),
  off('places', PLACE, 'no repository among files of ags', 'requireSuitable(project, world);'),
  off('places', PLACE, 'a repository has ids of one kind', 'if (repository.objectFormat !== work.objectFormat)', "if (repository.root === '')"),
  off('places', PLACE, 'a repository that knows the root', 'given.into === undefined || '),
  off('places', PLACE, 'a repository that can get to know it', ' || !given.complete'),
  off('places', PLACE, 'no way through a link', 'join(realpathSync(dirname(directory)), basename(directory))', 'join(dirname(directory), basename(directory))'),
  off('new places', PLACE, 'no main branch is a task', "branch === null || branch.startsWith('ags/') ? 'main' : branch", "branch ?? 'main'"),
  off('new places', PLACE, 'no directory that exists', 'mkdirSync(part);', 'mkdirSync(part, { recursive: true });'),
  off('new places', 'git/staging/new-repository.ts', 'no encoding is chosen', "setAttributes(git, 'changed');", "setAttributes(git, 'trusted');"),
  one('new places', 'no filter is run', ['git/staging/layer-git.ts', "'* -filter -working-tree-encoding\\n'", "'* -working-tree-encoding\\n'"], ['git/host-git.ts', "HOME: '/nonexistent'", "HOME: process.env['HOME'] ?? ''"], ['git/host-git.ts', "GIT_CONFIG_GLOBAL: '/dev/null',\n", '']),
  one('import journal', 'a branch that moved since stays', ['transfer/import-journal.ts', '(await readRef(branch.gitDir, branch.ref)) === branch.commit', 'true'], ANYWHERE),
  // The rights that it gets.
  off('rights', RULES, 'only what narrows holds without a yes', 'narrow: { ...off, ...deny }', 'narrow: all'),
  off('rights', RULES, 'a rule that widens is a question', 'asksOf(flagLayer(all), config, asked).map(withoutOrigin)', '[]'),
  off('rights', 'config/load.ts', 'no right by a file of the project', 'requireTrust({ stateDir: input.stateDir, projectDir: input.projectDir, bytes, asks });', 'requireTrust.name;'),
  off('rights', ASKS, 'variables are a question', "added('env.pass', base.envPass,", "added('env.pass', asked.envPass,"),
  off('rights', ASKS, 'hidden files are a question', "added('reveal', base.reveal,", "added('reveal', asked.reveal,"),
  off('rights', ASKS, 'limits are a question', 'if (!isAbove(asked.limits[field], base.limits[field])) continue;', 'if (asked.limits[field] !== undefined) continue;'),
  off('rights', ASKS, 'the network is a question', '...networkAsks(project, base, asked).map(onOneLine),'),
  off('rights', 'config/network/asks.ts', 'the mode of the network is a question', 'RANK.indexOf(after.mode) > RANK.indexOf(before.mode)', 'RANK.indexOf(after.mode) > 9'),
  off('rights', 'config/network/asks.ts', 'hosts are a question', "({ rules }) => rules.filter(({ action }) => action === 'allow'),", '() => [] as NetworkPolicy["rules"],'),
  off('rights', 'config/network/asks.ts', 'ports of hosts are a question', '({ tcp }) => tcp,', '() => [] as NetworkPolicy["tcp"],'),
  off('rights', 'config/network/asks.ts', 'ports of this machine are a question', '({ publish }) => publish,', '() => [] as NetworkPolicy["publish"],'),
  off('goals', IMPORT, 'no right without a yes', 'flags: trust ? wishes.all : wishes.narrow', 'flags: trust ? wishes.narrow : wishes.all'),
  off('goals', IMPORT, 'an agent or a command', "if ((task.agent === 'command') !== (task.command !== undefined))", "if (task.agent === '')"),
  off('claims', IMPORTED, 'no more time than here', 'least(task.maxSeconds, tasks.seconds)', 'task.maxSeconds'),
  off('claims', IMPORTED, 'no more money than here', 'least(task.maxCostMicros, tasks.costMicros)', 'task.maxCostMicros'),
  off('claims', IMPORTED, 'no more turns than here', 'least(task.maxTurns, tasks.turns)', 'task.maxTurns'),
  off('claims', IMPORTED, 'a running task is stopped here', "if (isUnderWay(run.state)) return 'stopped';"),
  off('claims', IMPORTED, 'nothing is merged that is on no branch', "return there.exitCode === 0 ? 'merged' : 'ready';", "return there.exitCode >= 0 ? 'merged' : 'ready';"),
  one('taken names', 'a branch that is there stays', [IMPORT, "[...taskIds(world.stateDir), ...(place.kind === 'new' ? [] : branchNames(place.repository))]", '[...taskIds(world.stateDir)]'], ANYWHERE),
  off('leavings', IMPORT, 'a failed import undoes its changes', 'await takeBackImport(making.root);'),
  off('leavings', IMPORT, 'no half task is left', '  } finally {\n    removeTree(making.root);\n  }', '  }'),
  // Exported texts.
  off('texts', TEXT, 'no path by its real name', '[...new Set([path, real(path)])]', '[path]'),
  off('texts', TEXT, 'no path by its signs', '.replaceAll(/[$()*+.?[\\\\\\]^{|}]/g, String.raw`\\$&`)'),
  off('texts', TEXT, 'no value of a variable', 'values.reduce((text, [secret, word]) => text.replaceAll(secret, word), value)', 'value'),
  off('texts', TEXT, 'values in lists are replaced', 'return value.map(change);', 'return value;'),
  off('texts', TEXT, 'values in objects are replaced', '[key, change(inner)]', '[key, inner]'),
];

const BOUNDS =
  /\.(?:max|min|regex|refine)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|(?<=z\.)strictObject|(?<=^export const \w+ = z\.)object|z\.(?:iso\.datetime|enum|literal)\((?:[^()])*\)/g;

/** z.int() has that bound by itself. */
const BY_ITSELF = '.max(Number.MAX_SAFE_INTEGER)';

/** One mutant for each bound of the schemas: without the bound, or with any value in its place or beside it. */
function bounds(file: string, by: (line: string) => Part): Mutant[] {
  return [...SOURCE.read(SOURCE.file(file)).matchAll(/^.+$/gm)].flatMap(([line]) =>
    [...line.matchAll(BOUNDS)]
      .filter(([found]) => found !== BY_ITSELF || !line.includes('z.int()'))
      .map(({ 0: found, index }) => {
        const instead = found.startsWith('.') ? '' : found.startsWith('z.') ? 'z.any()' : 'looseObject';
        const without = line.slice(0, index) + instead + line.slice(index + found.length);
        return off(by(line), file, `${found} of ${line.trim()}`, `\n${line}\n`, `\n${without}\n`);
      }),
  );
}

const schemas = SOURCE.read(SOURCE.file(EXPORT));
const isOfDecision = (line: string): boolean =>
  schemas.indexOf(line) >= schemas.search(/^export const \w+ = z\.object\(/m);

export const IMPORT_MUTANTS: readonly Mutant[] = [
  ...BY_HAND,
  ...bounds(EXPORT, (line) => (isOfDecision(line) ? 'decisions' : 'schema')),
  ...bounds(EVENT, () => 'events').filter(({ name }) => !name.includes('z.literal')),
];
