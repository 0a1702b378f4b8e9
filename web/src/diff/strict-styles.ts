// web/src/diff/strict-styles.ts: adopted style sheets in place of the diff library's style attributes and elements.
// The content security policy therefore needs no 'unsafe-inline'. web/diff-library.ts patches the library to call this.
import overrides from './diff-shadow.css?inline';

const rules = new CSSStyleSheet();
const known = new Map<string, string>();

/** An attribute that selects these declarations. They are the library's colours and sizes, never text from an agent. */
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

/** Added to every shadow root of the library, after its own sheets. */
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

/** Replaces a style element: the shadow root that contains it adopts its text as a style sheet. */
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
