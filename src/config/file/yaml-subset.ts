// config/file/yaml-subset.ts: refuses YAML features that a configuration does not need and that could attack its reader.
// Invariant: accepted text has no anchors, aliases, tags, directives or explicit keys and is neither deep nor long. Some of
// these grow without bound; very deep nesting crashes the process inside the YAML library, where nothing can catch it.
import { CST, Lexer } from 'yaml';

export interface Problem {
  readonly offset: number;
  readonly message: string;
}

/** The first forbidden token, or undefined. The text must have no control characters except tabs and line ends. */
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
    if (++tokens > MAX_TOKENS) return { offset, message: 'the file is too long' };
    if (!MARKERS.has(token)) offset += token.length;
  }
  return undefined;
}

const MAX_DEPTH = 8;
const MAX_INDENT = 64;
/** About 5,000 lines. */
const MAX_TOKENS = 30_000;
/** Tokens for states of the lexer rather than for text. */
const MARKERS = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);
const REFUSED: Readonly<Record<string, string>> = {
  anchor: 'anchors (&name) cannot be used here',
  alias: 'aliases (*name) cannot be used here; put a pattern that begins with * in quotes',
  tag: 'tags (!name) cannot be used here; put a text that begins with ! in quotes',
  'directive-line': 'directives (%...) cannot be used here',
  'explicit-key-ind': 'keys with "?" in front cannot be used here',
};
