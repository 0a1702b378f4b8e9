// web/src/text/markdown.tsx: renders Markdown from agents.
// Invariants: no raw HTML; no images, because loading one would contact its server; only http and https links, with their host
// visible. Markdown that is too slow to parse or nests too deeply is shown as plain text.
import Markdown from 'react-markdown';
import type { Components } from 'react-markdown';
import { memo } from 'react';
import type { ReactNode } from 'react';
import { clean, cleanLine } from './clean.ts';

const COMPONENTS: Components = {
  a: ({ href, children }) => <ExternalLink href={href ?? ''}>{children}</ExternalLink>,
  img: ({ alt, src }) => (
    <span className="text-muted">
      [image{alt === undefined || alt === '' ? '' : `: ${cleanLine(alt)}`}, not loaded
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
    // Focusable, so that the keyboard can scroll wide code.
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

export const AgentText = memo(function AgentText({ text }: { text: string }): ReactNode {
  if (isTooMuch(text)) return <p className="max-w-[80ch] whitespace-pre-wrap wrap-anywhere">{clean(text)}</p>;
  return (
    <div className="max-w-[80ch] wrap-anywhere">
      <Markdown skipHtml={false} components={COMPONENTS} urlTransform={(url) => url}>
        {clean(text)}
      </Markdown>
    </div>
  );
});

function ExternalLink({ href, children }: { href: string; children: ReactNode }): ReactNode {
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

/** Parsed by the browser, so the shown host is where the link leads; null for other schemes than http and https. */
function hostOf(href: string): string | null {
  try {
    const url = new URL(href);
    return url.protocol === 'http:' || url.protocol === 'https:' ? cleanLine(url.host, 120) : null;
  } catch {
    return null;
  }
}

const LONGEST = 40_000;
/** Parsing time grows faster than the number of these characters. */
const MOST_SIGNS = 1000;
const SIGNS = /[[*_`<&!~]/g;
/** Deeply nested quotes and lists, on one line or by indentation. */
const DEEP = /^(?:[ \t]{0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){10}|^[ \t]{40}/m;

function isTooMuch(text: string): boolean {
  return text.length > LONGEST || DEEP.test(text) || (text.match(SIGNS)?.length ?? 0) > MOST_SIGNS;
}
