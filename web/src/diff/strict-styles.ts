// web/src/diff/strict-styles.ts: what the diff library would write as style attributes and elements, as adopted style sheets.
// The content security policy then needs no 'unsafe-inline'. web/diff-library.ts puts these in the library's place.
import overrides from './diff-shadow.css?inline';

const rules = new CSSStyleSheet();
const known = new Map<string, string>();

/** The attribute that stands for these declarations. They are colours and sizes of the library, never words of an agent. */
export function styleAttribute(css: string): string {
  let attribute = known.get(css);
  if (attribute === undefined) {
    attribute = `data-css="${known.size}"`;
    rules.insertRule(`[${attribute}] { ${css} }`, rules.cssRules.length);
    known.set(css, attribute);
  }
  return attribute;
}

const ours = new CSSStyleSheet();
ours.replaceSync(overrides);

/** For every root that the library draws in, after its own. */
export function ourSheets(): CSSStyleSheet[] {
  return [rules, ours];
}

const sheets = new Map<string, CSSStyleSheet>();

function sheetOf(css: string): CSSStyleSheet {
  let sheet = sheets.get(css);
  if (sheet === undefined) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    sheets.set(css, sheet);
  }
  return sheet;
}

/** Stands where a style element would: its text is adopted by the root that it is put into. */
class SheetElement extends HTMLElement {
  #css = '';
  #root: ShadowRoot | null = null;

  override get textContent(): string {
    return this.#css;
  }

  override set textContent(css: string) {
    const root = this.#root;
    this.#leave();
    this.#css = css;
    if (root !== null) this.#enter(root);
  }

  connectedCallback(): void {
    const root = this.getRootNode();
    if (root instanceof ShadowRoot) this.#enter(root);
  }

  disconnectedCallback(): void {
    this.#leave();
  }

  #enter(root: ShadowRoot): void {
    this.#root = root;
    root.adoptedStyleSheets.push(sheetOf(this.#css));
  }

  #leave(): void {
    const root = this.#root;
    this.#root = null;
    if (root === null) return;
    const sheet = sheetOf(this.#css);
    root.adoptedStyleSheets = root.adoptedStyleSheets.filter((one) => one !== sheet);
  }
}
customElements.define('ags-sheet', SheetElement);

export const sheetElement = (): HTMLElement => document.createElement('ags-sheet');
