// web/src/actions/keys.tsx: keys as they are printed on the keyboard.
import type { ReactNode } from 'react';
import { Kbd } from '../ui/figures.tsx';
import { keyParts } from './keyboard.ts';

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
