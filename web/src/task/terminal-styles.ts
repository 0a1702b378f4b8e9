// web/src/task/terminal-styles.ts: the terminal library writes style elements and attributes, which the content security policy
// blocks. While a terminal is open, document.createElement routes those styles through the CSS object model, which is allowed.

/** Returns a function that restores document.createElement. */
export function allowTerminalStyles(page: Document): () => void {
  const create = Document.prototype.createElement;
  const sheets: CSSStyleSheet[] = [];

  function styleElement(): HTMLElement {
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    page.adoptedStyleSheets = [...page.adoptedStyleSheets, sheet];
    const stand = create.call(page, 'span');
    stand.hidden = true;
    Object.defineProperty(stand, 'textContent', {
      set(css: string) {
        sheet.replaceSync(css);
      },
      get: () => '',
    });
    return stand;
  }
  function spanElement(): HTMLElement {
    const span = create.call(page, 'span');
    span.setAttribute = (name, value) => {
      if (name === 'style') span.style.cssText = value;
      else Element.prototype.setAttribute.call(span, name, value);
    };
    return span;
  }
  const value = (tag: string, options?: ElementCreationOptions): HTMLElement =>
    tag === 'style' ? styleElement() : tag === 'span' ? spanElement() : create.call(page, tag, options);
  Object.defineProperty(page, 'createElement', { value, configurable: true });
  return () => {
    Reflect.deleteProperty(page, 'createElement');
    page.adoptedStyleSheets = page.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
  };
}
