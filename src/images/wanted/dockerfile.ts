// images/wanted/dockerfile.ts: which images a Dockerfile is based on, and which files it uses. Pure.
// The answers decide when an image is out of date and what the builder receives; if in doubt, everything.
import { fitsName } from '../../config/patterns.ts';

export interface DockerfileFacts {
  /** Names of base images, without those of its own stages. */
  readonly from: readonly string[];
  /** Paths in the context, which may contain `*`; null: the whole context. */
  readonly sources: readonly string[] | null;
}

export function readDockerfile(text: string): DockerfileFacts {
  const { from, sources } = read(text);
  return { from, sources };
}

/** `written`: images and stages exactly as written. */
function read(text: string): DockerfileFacts & { readonly written: ReadonlySet<string> } {
  const instructions = split(text);
  const stages = new Set<string>();
  const from: string[] = [];
  const names = new Set<string>();
  const sources: string[] = [];
  const preset = new Map<string, string>();
  let [all, begun] = [false, false];
  for (const { name, rest } of instructions) {
    const words = rest.split(/\s+/).filter((word) => word !== '' && !word.startsWith('--'));
    // ARG after the first FROM belongs to a stage.
    if (name === 'ARG' && !begun) presetBy(rest, preset);
    if (name === 'FROM') {
      begun = true;
      const [written = '', as = '', stage = ''] = words;
      names.add(written);
      const image = fill(written, preset);
      if (!stages.has(image.toLowerCase()) && image !== 'scratch') from.push(image);
      // Anything that is not a valid stage name stays an image name, and is checked as one.
      if (as.toUpperCase() === 'AS' && STAGE.test(stage)) stages.add(stage.toLowerCase());
    }
    if ((name !== 'COPY' && name !== 'ADD') || /(^|\s)--from=/.test(rest)) continue;
    const taken = rest.includes('[') ? listed(rest) : words.slice(0, -1);
    if (taken === null || taken.some((path) => path.includes('$'))) all = true;
    else sources.push(...taken.filter((path) => !/^(https?|git):\/\//.test(path)).map(plain));
  }
  const some = all || sources.includes('') ? null : [...new Set(sources)];
  return { from: [...new Set(from)], sources: some, written: names };
}

const STAGE = /^[a-z][a-z0-9-_.]*$/i;

/** Values with quotes and escapes are unknown, and so are images named by them. */
function presetBy(rest: string, preset: Map<string, string>): void {
  for (const word of rest.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? []) {
    const [, key = '', value] = /^(\w+)(?:=([^]*))?$/.exec(word) ?? [];
    if (value === undefined) preset.delete(key);
    else preset.set(key, fill(/^(["']?)([^"'\\`]*)\1$/.exec(value)?.[2] ?? '$', preset));
  }
}

/** Substitutes variables as builders do, with the defaults of the file: ags passes no other values. Unknown variables stay. */
function fill(text: string, preset: ReadonlyMap<string, string>): string {
  return text.replaceAll(
    /\$(?:(\w+)|\{(\w+)(?::-([^${}]*))?\})/g,
    (all: string, bare?: string, braced?: string, otherwise?: string) => {
      const value = preset.get(bare ?? braced ?? '');
      return value === undefined || value === '' ? (otherwise ?? value ?? all) : value;
    },
  );
}

/**
 * The engine itself fetches ADD with a URL, over this machine's network: past the gateway, and from loopback too. Returns the first such
 * line, or null. Lines with variables, quotes or escapes in what they add count too, because only the engine knows what they mean.
 * Every line is read as if an instruction began there, so that no way of joining lines hides one.
 */
export function fetchedByEngine(text: string): string | null {
  for (const rest of everyPossible('add', text)) {
    const words = withoutFlags(rest.split(/[\s\u0085]+/).filter((word) => word !== ''));
    const isList = words[0]?.startsWith('[') === true;
    const added = isList ? words.map((word) => word.replaceAll('"', '')) : words.slice(0, -1);
    if (added.some((word) => /[:$"'\\`]/.test(word))) return `ADD ${words.join(' ')}`;
  }
  return null;
}

/** Words that look like flags after the first other word are files. */
function withoutFlags(words: readonly string[]): readonly string[] {
  const first = words.findIndex((word) => !word.startsWith('--'));
  return first < 0 ? [] : words.slice(first);
}

/**
 * RUN with options asks the engine for more than a command: another network, other files, more rights. Returns the first such line, or
 * null.
 */
export function runWithOptions(text: string): string | null {
  const found = everyPossible('run', text).find((rest) => rest.startsWith('--'));
  return found === undefined ? null : `RUN ${found}`;
}

/**
 * To an engine, some image names mean files of this machine: oci:/path. Returns the first such name, or one that a variable could turn
 * into one, or null.
 */
export function imageFromFile(text: string): string | null {
  const words = (name: string): string[][] => everyPossible(name, text).map((rest) => rest.split(/[\s\u0085]+/));
  const copied = [...words('copy'), ...words('add')]
    .flat()
    // With quotes or escapes, any flag could be this one.
    .flatMap((word) => /^--from=([^]*)$/.exec(word)?.[1] ?? (/^--.*["'\\`]/.test(word) ? word : []));
  return (
    [...possibleImages(text), ...copied].find(
      (name) => !/^[\w.-]+([:/@]|$)/.test(name) || /:\//.test(name) || KINDS_OF_FILES.test(name),
    ) ?? null
  );
}

const KINDS_OF_FILES =
  /^(dir|oci|oci-archive|docker-archive|docker-daemon|containers-storage|ostree|sif|tarball|atomic):/i;

/**
 * A builder may see an instruction where we see none, and the other way round. Returns the first image that a line could name and that was
 * not checked, or a second rule about line continuation; null if there is none.
 */
export function readOtherwise(text: string): string | null {
  const lines = linesOf(text);
  const begun = lines.findIndex((line) => !IGNORED.test(line));
  const late = lines.slice(1, Math.max(begun, 1)).find((line) => ESCAPE.test(line));
  if (late !== undefined) return late.trim();
  const { written } = read(text);
  // A single word is a stage or a local image; lines of other languages begin like that too.
  return possibleImages(text).find((name) => /[/:@$\\]/.test(name) && !written.has(name)) ?? null;
}

function possibleImages(text: string): string[] {
  return everyPossible('from', text).flatMap((rest) => withoutFlags(rest.split(/[\s\u0085]+/))[0] ?? []);
}

/** Lines that builders ignore: empty ones and comments. A byte order mark, which JavaScript treats as blank, does not hide a comment from them. */
const IGNORED = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*(#|$)/;
const ESCAPE = /^[\s\u0085]*#\s*escape\s*=\s*(\S)/i;

function linesOf(text: string): string[] {
  return text.replace(/^\ufeff/, '').split('\n');
}

/** The arguments of an instruction, wherever one could begin. */
function everyPossible(name: string, text: string): string[] {
  const lines = linesOf(text).filter((line) => !IGNORED.test(line));
  const pattern = new RegExp(`^[\\s\\u0085]*(?:onbuild[\\s\\u0085]+)*${name}[\\s\\u0085]+([^]*)$`, 'i');
  return lines.flatMap((_, at) => pattern.exec(joinedFrom(lines, at))?.[1] ?? []);
}

function joinedFrom(lines: readonly string[], at: number): string {
  const goesOn = /[\\`]+[ \t\r]*$/;
  const end = lines.findIndex((line, i) => i >= at && !goesOn.test(line));
  return lines
    .slice(at, end < 0 ? undefined : end + 1)
    .map((line) => line.replace(goesOn, ''))
    .join('');
}

/** Whether one of the sources covers this path of the context. */
export function isTaken(path: string, sources: DockerfileFacts['sources']): boolean {
  if (sources === null) return true;
  return sources.some((source) => {
    const wanted = source.split('/');
    const given = path.split('/');
    return wanted.length <= given.length && wanted.every((part, at) => matches(part, given[at] ?? ''));
  });
}

function matches(pattern: string, name: string): boolean {
  if (!/[*?[]/.test(pattern)) return pattern === name;
  // Ranges are rare, so they cover every path.
  if (pattern.includes('[')) return true;
  return fitsName(pattern, name);
}

function plain(path: string): string {
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}

function listed(rest: string): string[] | null {
  try {
    const words = JSON.parse(rest.slice(rest.indexOf('['))) as unknown;
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words.slice(0, -1) : null;
  } catch {
    return null;
  }
}

/** Joins lines that end in the escape character; comments and empty lines between them are dropped. */
function split(text: string): { readonly name: string; readonly rest: string }[] {
  const all = linesOf(text).map((line) => line.replace(/\r$/, ''));
  const goesOn = ESCAPE.exec(all[0] ?? '')?.[1] === '`' ? /`[ \t]*$/ : /\\[ \t]*$/;
  const whole: string[] = [];
  let open = '';
  for (const line of all.filter((one) => !IGNORED.test(one))) {
    open += line.replace(goesOn, '');
    if (goesOn.test(line)) continue;
    whole.push(open.trim());
    open = '';
  }
  return [...whole, open.trim()].flatMap((line) => {
    const [, name, rest] = /^(\w+)\s+([\s\S]*)$/.exec(line) ?? [];
    return name === undefined || rest === undefined ? [] : [{ name: name.toUpperCase(), rest }];
  });
}
