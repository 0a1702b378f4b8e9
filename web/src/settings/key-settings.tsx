// web/src/settings/key-settings.tsx: every key can be changed, and single letters can be switched off.
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
    <Section title="Keys">
      <Setting
        name="Single letters"
        about="Without them, only keys with Ctrl or ⌘ do something. They never do while you type."
      >
        <Checkbox checked={single} onChange={setSingle} label="Single letters" />
      </Setting>
      <details className="mt-2">
        <summary className="min-h-6 cursor-pointer text-accent">Change keys</summary>
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
