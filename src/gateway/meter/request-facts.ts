// gateway/meter/request-facts.ts: what the meter wants to know of a request to a model, read while its body passes: does it offer tools,
// which model is it for, how long is it?

export interface RequestReader {
  push(data: Buffer): void;
  readonly bytes: number;
  /** True as well if it cannot be told. */
  readonly hasTools: boolean;
  readonly model: string | null;
}

// Within a text of JSON, a quotation mark has a backslash before it, so these are names and never a part of a message. A name with an
// escape may be any.
const TOOLS =
  /(?<!\\)"(?:tools|functions|functionDeclarations|function_declarations)":\[[^\]]|(?<!\\)"additional_tools"|(?<!\\)"\w{0,30}\\u00[0-9a-fA-F]{2}[\w\\]{0,60}":/;
const MODEL = /(?<!\\)"model":"([\w./:@-]{1,200})"/;
/** More than such a name with its value. */
const CARRIED = 512;

/** `readable`: it is not compressed. */
export function createRequestReader(readable: boolean): RequestReader {
  let bytes = 0;
  let hasTools = !readable;
  let model: string | null = null;
  let carried = '';
  return {
    push(data) {
      bytes += data.length;
      if (!readable || (hasTools && model !== null)) return;
      // Blanks between a name and its value are without end.
      const text = carried + data.toString('latin1').replaceAll(/\s+/g, '');
      hasTools ||= TOOLS.test(text);
      model ??= MODEL.exec(text)?.[1] ?? null;
      carried = text.slice(-CARRIED);
    },
    get bytes() {
      return bytes;
    },
    get hasTools() {
      return hasTools;
    },
    get model() {
      return model;
    },
  };
}
