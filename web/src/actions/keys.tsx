// web/src/actions/keys.tsx: keys as they are printed on the keyboard, and the sheet of all of them.
import type { ReactNode } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { Kbd } from '../ui/figures.tsx';
import { keyParts } from './keyboard.ts';
import { ACTION_IDS, ACTIONS, useKeysOf } from './registry.ts';
import type { Scope } from './registry.ts';

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

export function ShortcutSheet({ open, onClose }: { open: boolean; onClose: () => void }): ReactNode {
  const keysOf = useKeysOf();
  const scopes = [...new Set(ACTION_IDS.map((id) => ACTIONS[id].scope))] as Scope[];
  return (
    <Dialog wide open={open} onClose={onClose} title="Keys" about="They can be changed or switched off in Settings.">
      <div className="columns-1 gap-8 sm:columns-2">
        {scopes.map((scope) => (
          <section key={scope} className="mb-5 break-inside-avoid">
            <h3 className="mb-1 text-sm font-semibold">{scope}</h3>
            <dl>
              {ACTION_IDS.filter((id) => ACTIONS[id].scope === scope && keysOf(id).length > 0).map((id) => (
                <div key={id} className="flex min-h-7 items-center justify-between gap-4">
                  <dt className="text-muted">{ACTIONS[id].label}</dt>
                  <dd className="flex gap-2">
                    {keysOf(id).map((keys) => (
                      <Keys key={keys} keys={keys} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section className="break-inside-avoid">
          <h3 className="mb-1 text-sm font-semibold">Text boxes</h3>
          <dl>
            <div className="flex min-h-7 items-center justify-between gap-4">
              <dt className="text-muted">Send</dt>
              <dd>
                <Keys keys="mod+enter" />
              </dd>
            </div>
            <div className="flex min-h-7 items-center justify-between gap-4">
              <dt className="text-muted">Leave</dt>
              <dd>
                <Keys keys="escape" />
              </dd>
            </div>
          </dl>
        </section>
      </div>
    </Dialog>
  );
}
