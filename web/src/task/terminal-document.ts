// web/src/task/terminal-document.ts: the document as the terminal sees it. It would write style elements and style attributes, which
// the content security policy of the page refuses; here the same rules go through the CSS object model instead, which it allows.

export interface TerminalDocument {
  readonly document: Document;
  dispose(): void;
}

export function terminalDocument(real: Document): TerminalDocument {
  const sheets: CSSStyleSheet[] = [];

  function styleElement(): HTMLElement {
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    real.adoptedStyleSheets = [...real.adoptedStyleSheets, sheet];
    const stand = real.createElement('span');
    stand.hidden = true;
    Object.defineProperty(stand, 'textContent', {
      set(css: string) {
        sheet.replaceSync(css);
      },
      get: () => '',
    });
    return stand;
  }
  function withStyles(element: HTMLElement): HTMLElement {
    const set = element.setAttribute.bind(element);
    element.setAttribute = (name, value) => {
      if (name === 'style') element.style.cssText = value;
      else set(name, value);
    };
    return element;
  }
  const document = new Proxy(real, {
    get(target, name) {
      if (name === 'createElement')
        return (tag: string) => (tag === 'style' ? styleElement() : withStyles(target.createElement(tag)));
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return {
    document,
    dispose() {
      real.adoptedStyleSheets = real.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
    },
  };
}
