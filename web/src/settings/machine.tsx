// web/src/settings/machine.tsx: the state of the sandbox and the default limits for tasks.
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
          Defaults from your configuration and the project’s ags.yaml. Change them with{' '}
          <code className="font-mono text-sm">ags config</code>, or for one task when you start it.
        </>
      }
    >
      <Setting name="Sandbox" about={cleanLine(about.sandbox.text)}>
        <span className={`font-medium ${about.sandbox.ok ? 'text-ok' : 'text-bad'}`}>
          {about.sandbox.ok ? 'Working' : 'Not working'}
        </span>
      </Setting>
      <Setting name="Parallel agents">
        <span className="tabular">{parallel}</span>
      </Setting>
      <Setting name="Time limit per task">
        <span className="tabular">{maxSeconds === null ? 'none' : duration(maxSeconds * 1000)}</span>
      </Setting>
      <Setting name="Cost limit per task">
        <span className="tabular">{maxCostMicros === null ? 'none' : money(maxCostMicros)}</span>
      </Setting>
      {about.budgets.map(({ costMicros, spentMicros, per }) => (
        <Setting key={per} name={`Budget per ${per}, all tasks`}>
          <span className="tabular">
            {money(spentMicros)} of {money(costMicros)} used
          </span>
        </Setting>
      ))}
      <Setting name="Turn limit per task">
        <span className="tabular">{maxTurns ?? 'none'}</span>
      </Setting>
      <Setting name="Version">
        <span className="tabular">{cleanLine(about.version)}</span>
      </Setting>
    </Section>
  );
}
