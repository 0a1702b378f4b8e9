// web/src/text/markdown.tsx: what an agent says, with headings, lists and code.
// Invariants: no raw HTML, no images (loading one would tell somebody), links to http and https alone and with their host to be seen;
// what would keep the browser busy, or nest deeper than it can draw, is shown as it was written.
import Markdown from 'react-markdown';
import type { Components } from 'react-markdown';
import { memo } from 'react';
import type { ReactNode } from 'react';
import { clean, cleanLine } from './clean.ts';

const COMPONENTS: Components = {
  a: ({ href, children }) => <Outside href={href ?? ''}>{children}</Outside>,
  img: ({ alt, src }) => (
    <span className="text-muted">
      [picture{alt === undefined || alt === '' ? '' : `: ${cleanLine(alt)}`}, not loaded
      {typeof src === 'string' ? `: ${cleanLine(src, 120)}` : ''}]
    </span>
  ),
  h1: ({ children }) => <p className="mt-3 mb-1 text-lg font-semibold first:mt-0">{children}</p>,
  h2: ({ children }) => <p className="mt-3 mb-1 font-semibold first:mt-0">{children}</p>,
  h3: ({ children }) => <p className="mt-2 mb-1 font-semibold first:mt-0">{children}</p>,
  h4: ({ children }) => <p className="mt-2 font-semibold first:mt-0">{children}</p>,
  h5: ({ children }) => <p className="mt-2 font-semibold first:mt-0">{children}</p>,
  h6: ({ children }) => <p className="mt-2 font-semibold first:mt-0">{children}</p>,
  p: ({ children }) => <p className="my-2 first:mt-0 last:mb-0">{children}</p>,
  ul: ({ children }) => <ul className="my-2 list-disc pl-5">{children}</ul>,
  ol: ({ children, start }) => (
    <ol className="my-2 list-decimal pl-5" start={start}>
      {children}
    </ol>
  ),
  pre: ({ children }) => (
    // Code may be wider than the page: the keyboard must be able to move it.
    <pre
      tabIndex={0}
      className="my-2 max-w-full overflow-x-auto rounded-md border border-line bg-panel p-3 font-mono text-sm"
    >
      {children}
    </pre>
  ),
  code: ({ children }) => (
    <code className="rounded-sm bg-raised px-1 font-mono text-sm in-[pre]:bg-transparent in-[pre]:p-0">{children}</code>
  ),
  blockquote: ({ children }) => (
    <blockquote className="my-2 border-l-2 border-line-strong pl-3 text-muted">{children}</blockquote>
  ),
  hr: () => <hr className="my-3 border-line" />,
};

export const Words = memo(function Words({ text }: { text: string }): ReactNode {
  if (isTooMuch(text)) return <p className="max-w-[80ch] whitespace-pre-wrap wrap-anywhere">{clean(text)}</p>;
  return (
    <div className="max-w-[80ch] wrap-anywhere">
      <Markdown skipHtml={false} components={COMPONENTS} urlTransform={(url) => url}>
        {clean(text)}
      </Markdown>
    </div>
  );
});

function Outside({ href, children }: { href: string; children: ReactNode }): ReactNode {
  const host = hostOf(href);
  if (host === null)
    return (
      <span>
        {children} <span className="text-muted">({cleanLine(href, 120)})</span>
      </span>
    );
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" className="text-accent underline">
      {children} <span className="text-muted">({host})</span>
    </a>
  );
}

/** As the browser reads it, so that what is shown is where it leads; null for everything but http and https. */
function hostOf(href: string): string | null {
  try {
    const url = new URL(href);
    return url.protocol === 'http:' || url.protocol === 'https:' ? cleanLine(url.host, 120) : null;
  } catch {
    return null;
  }
}

const LONGEST = 40_000;
/** Reading them costs more than their number. */
const MOST_SIGNS = 1000;
const SIGNS = /[[*_`<&!~]/g;
/** Quotes and lists within each other, on one line or by being further in on each. */
const DEEP = /^(?:[ \t]{0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){10}|^[ \t]{40}/m;

function isTooMuch(text: string): boolean {
  return text.length > LONGEST || DEEP.test(text) || (text.match(SIGNS)?.length ?? 0) > MOST_SIGNS;
}
