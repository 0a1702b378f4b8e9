// web/diff-library.ts: patches the diff library during the build.
// The library writes style attributes and elements, which the content security policy blocks; adopted style sheets replace them.
// It can load every Shiki grammar and theme. The highlighter we use has its own languages, so Shiki is left out of the bundle.
// Invariant: every patch matches exactly once, or the build fails. The library is pinned and changes often.
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const STRICT = fileURLToPath(new URL('src/diff/strict-styles.ts', import.meta.url));
/** These two themes stay readable on every background colour of a diff. */
const THEMES = `export const themes = {
  'github-light-high-contrast': () => import('@pierre/highlights/themes/github-light-high-contrast'),
  'github-dark-default': () => import('@pierre/highlights/themes/github-dark-default'),
};`;
const NO_SHIKI = `const missing = () => { throw new Error('this page is built without Shiki'); };
export const bundledLanguages = {}, themes = { getTheme: missing }, EncodedTokenMetadata = {}, INITIAL = {};
export { missing as createCssVariablesTheme, missing as createHighlighterCore, missing as normalizeTheme };
export { missing as createJavaScriptRegexEngine, missing as createOnigurumaEngine };`;
const MADE_UP: Readonly<Record<string, string>> = { '\0ags-themes': THEMES, '\0ags-no-shiki': NO_SHIKI };

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** A function of strict-styles.ts that the patched file imports. */
  readonly use?: string;
}

const CHANGES: readonly Change[] = [
  {
    file: 'utils/hastToHtml.js',
    from: 'attribute = `style="${escapeAttribute(value)}"`;',
    to: 'attribute = styleAttribute(value);',
    use: 'styleAttribute',
  },
  {
    file: 'utils/hostTheme.js',
    from: 'document.createElement("style")',
    to: 'sheetElement()',
    use: 'sheetElement',
  },
  {
    file: 'utils/createUnsafeCSSStyleNode.js',
    from: 'document.createElement("style")',
    to: 'sheetElement()',
    use: 'sheetElement',
  },
  {
    file: 'components/web-components.js',
    from: 'shadowRoot.adoptedStyleSheets = [sheet];',
    to: 'shadowRoot.adoptedStyleSheets = [sheet, ...ourSheets()];',
    use: 'ourSheets',
  },
  // The library copies every line so that the full text can be freed. The page keeps the full text, so copying only costs time.
  {
    file: 'utils/detachString.js',
    from: 'function detachString(value) {',
    to: 'function detachString(value) {\n\treturn value;',
  },
  // Accessibility: give the library's buttons a name, and let the keyboard reach the expand buttons.
  {
    file: 'utils/createSeparator.js',
    from: `role: "button",
			"data-expand-button": "",
			"data-expand-both"`,
    to: `role: "button",
			title: "Show more lines",
			tabIndex: 0,
			"data-expand-button": "",
			"data-expand-both"`,
  },
  {
    file: 'utils/createGutterUtilityElement.js',
    from: '"data-utility-button": "",',
    to: '"data-utility-button": "", title: "Comment on this line", tabIndex: -1,',
  },
];

export function diffLibrary(): Plugin {
  const made = new Set<Change>();
  return {
    name: 'ags-diff-library',
    enforce: 'pre',
    resolveId(source, importer) {
      if (importer?.includes('@pierre/') !== true) return null;
      if (source === '@pierre/highlights/themes/loader') return '\0ags-themes';
      if (/^shiki($|\/)|^@pierre\/theming\/themes$/.test(source)) return '\0ags-no-shiki';
      return null;
    },
    load: (id) => MADE_UP[id] ?? null,
    transform(code, id) {
      const [path = ''] = id.split('?');
      const change = CHANGES.find(({ file }) => path.endsWith(`@pierre/diffs/dist/${file}`));
      if (change === undefined) return null;
      const parts = code.split(change.from);
      if (parts.length !== 2)
        this.error(`${change.file} of @pierre/diffs has changed: update the patch in web/diff-library.ts`);
      made.add(change);
      const uses = change.use === undefined ? '' : `import { ${change.use} } from ${JSON.stringify(STRICT)};\n`;
      return { code: uses + parts.join(change.to), map: null };
    },
    buildEnd(error) {
      const missing = CHANGES.filter((change) => !made.has(change));
      if (error === undefined && !this.meta.watchMode && missing.length > 0 && made.size > 0)
        this.error(
          `@pierre/diffs has changed; patches in web/diff-library.ts match nothing: ${missing.map(({ file }) => file).join(', ')}`,
        );
    },
  };
}
