// web/src/actions/sheet.tsx: all keys on one sheet, made of the registry.
import type { ReactNode } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { AllKeys, Keys } from './keys.tsx';
import { ACTION_IDS, ACTIONS, useKeysOf } from './registry.ts';
import type { Scope } from './registry.ts';

export function ShortcutSheet({ onClose }: { onClose: () => void }): ReactNode {
  const keysOf = useKeysOf();
  const scopes = [...new Set(ACTION_IDS.map((id) => ACTIONS[id].scope))] as Scope[];
  return (
    <Dialog wide open onClose={onClose} title="Keys" reads about="They can be changed or switched off in Settings.">
      <div className="columns-1 gap-8 sm:columns-2">
        {scopes.map((scope) => (
          <section key={scope} className="mb-5 break-inside-avoid">
            <h3 className="mb-1 text-sm font-semibold">{scope}</h3>
            <dl>
              {ACTION_IDS.filter((id) => ACTIONS[id].scope === scope && keysOf(id).length > 0).map((id) => (
                <div key={id} className="flex min-h-7 items-center justify-between gap-4">
                  <dt className="text-muted">{ACTIONS[id].label}</dt>
                  <dd className="flex gap-2">
                    <AllKeys all={keysOf(id)} />
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
