// web/src/settings/key-settings.tsx: changes keyboard shortcuts, and turns single-letter shortcuts on or off.
import { useState } from 'react';
import type { ReactNode } from 'react';
import { keyName } from '../actions/keyboard.ts';
import { AllKeys } from '../actions/keys.tsx';
import { ACTION_IDS, ACTIONS, rebind, useKeysOf } from '../actions/registry.ts';
import type { ActionId } from '../actions/registry.ts';
import { usePreference } from '../look/preferences.ts';
import { Button } from '../ui/button.tsx';
import { Checkbox } from '../ui/fields.tsx';
import { Section, Setting } from './section.tsx';

export function KeySettings(): ReactNode {
  const [single, setSingle] = usePreference('single-keys', true);
  const keysOf = useKeysOf();
  return (
    <Section title="Keyboard shortcuts">
      <Setting
        name="Single-letter shortcuts"
        about="When off, letters alone do nothing. They never act while you type."
      >
        <Checkbox checked={single} onChange={setSingle} label="Single-letter shortcuts" />
      </Setting>
      <details className="mt-2">
        <summary className="min-h-6 cursor-pointer text-accent">Change shortcuts</summary>
        <ul className="mt-2">
          {ACTION_IDS.map((id) => (
            <li key={id} className="flex min-h-9 flex-wrap items-center gap-3 border-b border-line">
              <span className="w-20 text-sm text-muted">{ACTIONS[id].scope}</span>
              <span className="grow">{ACTIONS[id].label}</span>
              <AllKeys all={keysOf(id)} />
              <Change id={id} />
            </li>
          ))}
        </ul>
      </details>
    </Section>
  );
}

function Change({ id }: { id: ActionId }): ReactNode {
  const [waiting, setWaiting] = useState(false);
  return (
    <>
      <Button
        size="small"
        aria-label={`${waiting ? 'Press a key' : 'Change'}: ${ACTIONS[id].label}`}
        onClick={() => setWaiting(!waiting)}
        onBlur={() => setWaiting(false)}
        onKeyDown={(event) => {
          if (!waiting || event.key === 'Tab') return;
          event.preventDefault();
          const name = keyName(event.nativeEvent);
          if (name === null) return;
          if (name !== 'escape') rebind(id, [name]);
          setWaiting(false);
        }}
      >
        {waiting ? 'Press a key' : 'Change'}
      </Button>
      <Button size="small" look="quiet" aria-label={`Reset: ${ACTIONS[id].label}`} onClick={() => rebind(id, null)}>
        Reset
      </Button>
    </>
  );
}
