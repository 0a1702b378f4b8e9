// web/src/actions/sheet.tsx: the dialog that lists all keyboard shortcuts.
import type { ReactNode } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { AllKeys, Keys } from './keys.tsx';
import { ACTION_IDS, ACTIONS, useKeysOf } from './registry.ts';
import type { Scope } from './registry.ts';

export function ShortcutSheet({ onClose }: { onClose: () => void }): ReactNode {
  const keysOf = useKeysOf();
  const scopes = [...new Set(ACTION_IDS.map((id) => ACTIONS[id].scope))] as Scope[];
  return (
    <Dialog
      wide
      open
      onClose={onClose}
      title="Keyboard shortcuts"
      reads
      about="Change them, or turn off single-letter shortcuts, in Settings."
    >
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
          <h3 className="mb-1 text-sm font-semibold">Text fields</h3>
          <dl>
            {(['mod+enter', 'escape'] as const).map((keys) => (
              <div key={keys} className="flex min-h-7 items-center justify-between gap-4">
                <dt className="text-muted">{keys === 'escape' ? 'Leave the field' : 'Send'}</dt>
                <dd>
                  <Keys keys={keys} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}
