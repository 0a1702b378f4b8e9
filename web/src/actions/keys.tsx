// web/src/actions/keys.tsx: draws key combinations as key caps.
import type { ReactNode } from 'react';
import { Kbd } from '../ui/figures.tsx';
import { keyParts } from './keyboard.ts';

/** More than three alternatives are shown as a range: the first and the last. */
export function AllKeys({ all }: { all: readonly string[] }): ReactNode {
  const shown = all.length > 3 ? [all[0] ?? '', all.at(-1) ?? ''] : all;
  return shown.map((keys, at) => (
    <span key={keys} className="inline-flex items-center gap-2">
      {at > 0 ? <span className="text-xs text-muted">{shown === all ? 'or' : 'to'}</span> : null}
      <Keys keys={keys} />
    </span>
  ));
}

export function Keys({ keys }: { keys: string }): ReactNode {
  return (
    <span className="inline-flex items-center gap-1">
      {keyParts(keys).map((part, at) =>
        part === 'then' ? (
          <span key={at} className="text-xs text-muted">
            then
          </span>
        ) : (
          <Kbd key={at}>{part}</Kbd>
        ),
      )}
    </span>
  );
}
