// web/src/settings/machine.tsx: this machine: its sandbox, and the limits that hold unless a task is given others.
import type { ReactNode } from 'react';
import type { ApiAbout } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { duration, money } from '../text/format.ts';
import { Section, Setting } from './section.tsx';

export function Machine({ about }: { about: ApiAbout }): ReactNode {
  const { parallel, maxSeconds, maxCostMicros, maxTurns } = about.defaults;
  return (
    <Section
      title="Sandbox and limits"
      about={
        <>
          They come from your configuration and from ags.yaml of a project; change them with{' '}
          <code className="font-mono text-sm">ags config</code>. A task can be given others when it is started.
        </>
      }
    >
      <Setting name="Sandbox" about={cleanLine(about.sandbox.text)}>
        <span className={`font-medium ${about.sandbox.ok ? 'text-ok' : 'text-bad'}`}>
          {about.sandbox.ok ? 'Works' : 'Does not work'}
        </span>
      </Setting>
      <Setting name="Agents at once">
        <span className="tabular">{parallel}</span>
      </Setting>
      <Setting name="Time of a task">
        <span className="tabular">{maxSeconds === null ? 'no limit' : duration(maxSeconds * 1000)}</span>
      </Setting>
      <Setting name="Cost of a task">
        <span className="tabular">{maxCostMicros === null ? 'no limit' : money(maxCostMicros)}</span>
      </Setting>
      <Setting name="Turns of a task">
        <span className="tabular">{maxTurns ?? 'no limit'}</span>
      </Setting>
      <Setting name="Version">
        <span className="tabular">{cleanLine(about.version)}</span>
      </Setting>
    </Section>
  );
}
