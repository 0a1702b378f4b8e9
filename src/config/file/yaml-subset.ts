// config/file/yaml-subset.ts: the part of YAML that a configuration needs, and nothing that can be used against its reader.
// Invariant: what passes has no anchors, aliases, tags, directives or explicit keys and is neither deep nor long. Some of
// these grow without bound; very deep nesting ends the whole process inside the YAML library, where nothing can catch it.
import { CST, Lexer } from 'yaml';

export interface Problem {
  readonly offset: number;
  readonly message: string;
}

/** The first thing that is not allowed, or undefined. The text must have no control characters but tab and line ends. */
export function outsideSubset(text: string): Problem | undefined {
  let offset = 0;
  let depth = 0;
  let indicators = 0;
  let tokens = 0;
  let isText = false;
  for (const token of new Lexer().lex(text)) {
    const type = isText ? null : CST.tokenType(token);
    isText = token === CST.SCALAR;
    const refusal = type === null ? undefined : REFUSED[type];
    if (refusal) return { offset, message: refusal };
    if (type === 'flow-seq-start' || type === 'flow-map-start') depth++;
    if (type === 'flow-seq-end' || type === 'flow-map-end') depth--;
    if (type === 'seq-item-ind') indicators++;
    if (type === 'newline') indicators = 0;
    const indented = type === 'space' && token.length > MAX_INDENT && (offset === 0 || text[offset - 1] === '\n');
    if (depth > MAX_DEPTH || indicators > MAX_DEPTH || indented)
      return { offset, message: 'this is nested too deeply' };
    if (++tokens > MAX_TOKENS) return { offset, message: 'this is longer than any configuration needs to be' };
    if (!MARKERS.has(token)) offset += token.length;
  }
  return undefined;
}

const MAX_DEPTH = 8;
const MAX_INDENT = 64;
/** Some 5,000 lines. */
const MAX_TOKENS = 30_000;
/** Tokens that stand for a state of the lexer, not for text. */
const MARKERS = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);
const REFUSED: Readonly<Record<string, string>> = {
  anchor: 'anchors (&name) cannot be used here',
  alias: 'aliases (*name) cannot be used here; put a pattern that begins with * in quotes',
  tag: 'tags (!name) cannot be used here; put a text that begins with ! in quotes',
  'directive-line': 'directives (%...) cannot be used here',
  'explicit-key-ind': 'keys with "?" in front cannot be used here',
};
