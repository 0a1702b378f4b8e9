// images/wanted/dockerfile.ts: what a Dockerfile stands on, and which files it takes. Pure.
// It is read to know when an image is out of date and what to hand to the builder: in doubt it takes everything.
import { fitsName } from '../../config/patterns.ts';

export interface DockerfileFacts {
  /** Images, as they are named; not those of its own stages. */
  readonly from: readonly string[];
  /** Paths of the context, which may have `*` in them; null: all of it. */
  readonly sources: readonly string[] | null;
}

export function readDockerfile(text: string): DockerfileFacts {
  const { from, sources } = read(text);
  return { from, sources };
}

/** `written`: the images and stages as they stand there. */
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
    // Those after the first FROM belong to a stage.
    if (name === 'ARG' && !begun) presetBy(rest, preset);
    if (name === 'FROM') {
      begun = true;
      const [written = '', as = '', stage = ''] = words;
      names.add(written);
      const image = fill(written, preset);
      if (!stages.has(image.toLowerCase()) && image !== 'scratch') from.push(image);
      // Whatever is no name for a stage stays one of an image, which somebody has to look at.
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

/** A value that is put together of quotes and escapes is not known, and so neither is an image that is named by it. */
function presetBy(rest: string, preset: Map<string, string>): void {
  for (const word of rest.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? []) {
    const [, key = '', value] = /^(\w+)(?:=([^]*))?$/.exec(word) ?? [];
    if (value === undefined) preset.delete(key);
    else preset.set(key, fill(/^(["']?)([^"'\\`]*)\1$/.exec(value)?.[2] ?? '$', preset));
  }
}

/** As builders do it, with what the file itself presets: nobody gives other values to a build. What is not known stays. */
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
 * ADD with an address is fetched by the engine itself, over the network of this machine: past the gateway, and from its loopback too.
 * The first such line; null: there is none. Also a line of which only the engine will know whether it is one: with variables, quotes or
 * escapes in what it adds. Every line is looked at as if an instruction began there, so that no reading of what belongs together hides one.
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

/** Behind the first word that is none, what looks like one is a file: the one that is written to, for example. */
function withoutFlags(words: readonly string[]): readonly string[] {
  const first = words.findIndex((word) => !word.startsWith('--'));
  return first < 0 ? [] : words.slice(first);
}

/**
 * RUN with options asks the engine for something beside the command: another network, files of others, more rights. The first such
 * line; null: there is none.
 */
export function runWithOptions(text: string): string | null {
  const found = everyPossible('run', text).find((rest) => rest.startsWith('--'));
  return found === undefined ? null : `RUN ${found}`;
}

/**
 * Some names of images mean files of this machine to an engine: oci:/path. The first that does, or that a variable could make one; null: there
 * is none.
 */
export function imageFromFile(text: string): string | null {
  const words = (name: string): string[][] => everyPossible(name, text).map((rest) => rest.split(/[\s\u0085]+/));
  const copied = [...words('copy'), ...words('add')]
    .flat()
    // With quotes or escapes in it any flag may be this one.
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
 * A builder may take for an instruction what was no instruction to us, and the other way round. The first image that a line could name and nobody
 * would have looked at, or what says otherwise than in the first line how lines go on; null: there is none.
 */
export function readOtherwise(text: string): string | null {
  const lines = linesOf(text);
  const begun = lines.findIndex((line) => !IGNORED.test(line));
  const late = lines.slice(1, Math.max(begun, 1)).find((line) => ESCAPE.test(line));
  if (late !== undefined) return late.trim();
  const { written } = read(text);
  // One word alone is a stage, or no image of a stranger: lines of other languages begin like that too.
  return possibleImages(text).find((name) => /[/:@$\\]/.test(name) && !written.has(name)) ?? null;
}

function possibleImages(text: string): string[] {
  return everyPossible('from', text).flatMap((rest) => withoutFlags(rest.split(/[\s\u0085]+/))[0] ?? []);
}

/** As builders take it: empty, or a comment. What JavaScript takes for blank besides, the mark of byte order, hides no comment from them. */
const IGNORED = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*(#|$)/;
const ESCAPE = /^[\s\u0085]*#\s*escape\s*=\s*(\S)/i;

function linesOf(text: string): string[] {
  return text.replace(/^\ufeff/, '').split('\n');
}

/** What follows the name of an instruction, wherever one could begin. */
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

/** Does one of the sources mean this path of the context? */
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
  // Ranges are rare: whatever could be meant is taken.
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

/** Lines that end in the escape character go on; comments and empty lines among them do not count. */
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
