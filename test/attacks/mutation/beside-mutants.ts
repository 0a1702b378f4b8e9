// test/attacks/mutation/beside-mutants.ts: the protections of the image cache, nested Docker's answers and service seeds: each row removes
// one and names the attempt of image-parts.ts or engine-parts.ts that must notice.
import type { BESIDE_PARTS } from './engine-parts.ts';
import type { IMAGE_PARTS } from './image-parts.ts';
import { mutantsOf } from './parts.ts';

const { one, off } = mutantsOf<keyof typeof IMAGE_PARTS | keyof typeof BESIDE_PARTS>();

const [QUESTION, CACHE, STORE] = [
  'nested-docker/image-cache/request.ts',
  'nested-docker/image-cache/cache.ts',
  'nested-docker/image-cache/store.ts',
];
const UPSTREAM = 'nested-docker/image-cache/upstream.ts';

// One row for each mutant, as a table.
// oxfmt-ignore
export const BESIDE_MUTANTS = [
  off('questions', QUESTION, 'the cache is read-only', "if (method !== 'GET' && method !== 'HEAD')", "if (method === '')"),
  off('questions', QUESTION, 'addresses without passwords', '[a-z0-9.-]+(?::\\d{1,5})?))?', '[a-z0-9.:@-]+(?::\\d{1,5})?))?'),
  off('questions', QUESTION, 'names of images are plain', '([a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*)', '([a-z0-9./_-]+)'),
  off('questions', QUESTION, 'names of images have an end', 'repository.length > MOST_NAME || '),
  off('questions', QUESTION, 'a layer is named by what is in it', "(kind === 'blob' ? DIGEST : REFERENCE)", 'REFERENCE'),
  off('questions', QUESTION, 'tags are plain', "!(kind === 'blob' ? DIGEST : REFERENCE).test(reference)", "!(kind === 'blob' ? DIGEST : /./).test(reference)"),
  off('questions', QUESTION, 'tags have an end', '[A-Za-z0-9._-]{0,127})$/', '[A-Za-z0-9._-]*)$/'),
  off('questions', QUESTION, 'no fragment', '(?:\\?([^#]*))?$/i', '(?:\\?([^#]*))?(?:#.*)?$/i'),
  off('images', CACHE, 'registries that were named', 'const origin = registries.get(question.registry);', 'const origin = registries.get(question.registry) ?? [...registries.values()][0];'),
  off('images', STORE, 'a layer is what its digest says', "if (`sha256:${sum.digest('hex')}` !== digest) {", "if (digest === '') {"),
  off('images', CACHE, 'the last piece waits', '        held = chunk;\n', '        response.write(chunk);\n'),
  off('images', CACHE, 'a manifest is what its digest says', 'if (found !== said) {', "if (said === '') {"),
  off('images', CACHE, 'manifests have an end', 'readBytes(from, MOST_MANIFEST)', 'readBytes(from, 2 ** 40)'),
  off('images', CACHE, 'a layer is of its image', 'return `${origin}/${question.repository}`;', "return origin.slice(0, 0) + question.kind;"),
  off('images', CACHE, 'the registry has it for that image too', 'if (head.statusCode !== 200) return null;\n    await store.learn'  , 'await store.learn'),
  one('images', 'other registries prove nothing', [CACHE, 'store.part(connection.origin, digest)', "store.part('', digest)"], [CACHE, '[placeOf(connection), connection.origin]', "[placeOf(connection), '']"]),
  off('keeping', CACHE, 'a tag is asked for again', 'return age >= 0 && age < TAG_MS;', 'return age >= 0;'),
  off('keeping', CACHE, 'a tag from the future is asked for again', 'return age >= 0 && age < TAG_MS;', 'return age < TAG_MS;'),
  off('keeping', CACHE, 'one note of a tag for each manifest type', 'return MANIFEST_TYPES.filter((type) => said.includes(type));', 'return said;'),
  off('keeping', STORE, 'a limit on what is kept', 'if (total <= mostBytes) break;\n    rmSync(path, { force: true });\n    total -= bytes;\n  }\n  return total <= mostBytes;', 'if (total > 0) break;\n    rmSync(path, { force: true });\n    total -= bytes;\n  }\n  return true;'),
  off('keeping', STORE, 'a layer has an end', 'await roomFor(path, dir, mostBytes);'),
  off('registries', UPSTREAM, 'a token for its registry', 'if (token !== null && url.origin === first.origin)', 'if (token !== null)'),
  off('registries', UPSTREAM, 'a token for reading', 'realm.searchParams.set(\'scope\', `repository:${wanted.repository}:pull`);', "realm.searchParams.set('scope', of('scope') ?? `repository:${wanted.repository}:pull`);"),
  off('registries', UPSTREAM, 'a token has an end', 'readAll(answer, MOST_TOKEN_BYTES)', 'readAll(answer, 2 ** 40)'),
  off('registries', UPSTREAM, 'a token over TLS', "if (realm.protocol !== 'https:' && realm.origin !== wanted.origin)", "if (realm.protocol === '')"),
  off('registries', UPSTREAM, 'no password', '!/^bearer /i.test(challenge) || '),
  off('registries', UPSTREAM, 'TLS after every redirect', " || (next.protocol !== 'https:' && next.origin !== first.origin)"),
  off('registries', UPSTREAM, 'a limit on redirects', 'const MOST_REDIRECTS = 5;', 'const MOST_REDIRECTS = 50;'),
  off('answers', 'nested-docker/ask-engine.ts', 'a limit on answers of a daemon', 'if (text.length > MOST_CHARACTERS) throw', 'if (text.length < 0) throw'),
  off('answers', 'nested-docker/ask-engine.ts', 'escapes in messages of a daemon are shown as text', "visible(flat(typeof message === 'string' ? message : text).slice(0, 500))", "flat(typeof message === 'string' ? message : text).slice(0, 500)"),
  off('answers', 'nested-docker/ask-engine.ts', 'a limit on messages of a daemon', '.slice(0, 500)'),
  off('crowds', 'nested-docker/nested-docker.ts', 'a limit on connections to a daemon', 'if (led.size >= MOST_OPEN)', 'if (led.size < 0)'),
  off('seeds', 'workspace/seed-files.ts', 'no hidden file is a seed', "if (plan.hidden.paths.some((hidden) => path === hidden || path.startsWith(`${hidden}/`)))", "if (path === '')"),
  off('seeds', 'workspace/seed-files.ts', 'seeds have an end', "readBelow(root, path.split('/'), MOST_BYTES)", "readBelow(root, path.split('/'), 2 ** 40)"),
  one('seeds', 'no seed is a link', ['lib/descend.ts', 'O_RDONLY | O_NOFOLLOW | O_NONBLOCK', 'O_RDONLY | O_NONBLOCK']),
  one('seeds', 'no seed is behind a link', ['lib/descend.ts', 'const PIN = O_PATH | O_DIRECTORY | O_NOFOLLOW;', 'const PIN = O_PATH | O_DIRECTORY;']),
];
