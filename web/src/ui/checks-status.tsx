// web/src/ui/checks-status.tsx: the result of a task's last checks, as an icon and a few words.
import { CircleCheck, CircleDashed, CircleSlash, CircleX, LoaderCircle } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { Elapsed } from './figures.tsx';

type Checks = NonNullable<ApiTask['checks']>;

export function ChecksStatus({ checks, brief = false }: { checks: Checks | null; brief?: boolean }): ReactNode {
  if (checks === null) return <Line sign={CircleDashed} look="text-muted" words="Checks not run" />;
  switch (checks.state) {
    case 'running':
      return (
        <Line
          sign={LoaderCircle}
          look="text-muted"
          moving
          words={
            <>
              Checks running{checks.name === null || brief ? '' : `: ${cleanLine(checks.name, 60)}`}{' '}
              <Elapsed from={checks.startedAtMs} />
            </>
          }
        />
      );
    case 'passed':
      return <Line sign={CircleCheck} look="text-ok" words="Checks passed" />;
    case 'failed':
      return <Line sign={CircleX} look="text-bad" words={`Checks failed${brief ? '' : failure(checks)}`} />;
    case 'ended':
      return <Line sign={CircleSlash} look="text-muted" words="Checks ended without a result" />;
  }
}

function failure({ name, line }: Checks): string {
  return `${name === null ? '' : `: ${cleanLine(name, 60)}`}${line === null ? '' : `: ${cleanLine(line, 200)}`}`;
}

function Line({
  sign: Sign,
  look,
  words,
  moving = false,
}: {
  sign: typeof CircleCheck;
  look: string;
  words: ReactNode;
  moving?: boolean;
}): ReactNode {
  return (
    <span className={`flex min-w-0 items-start gap-1.5 ${look}`}>
      <Sign size={14} aria-hidden className={`mt-1 shrink-0 ${moving ? 'animate-spin' : ''}`} />
      <span className="min-w-0 wrap-anywhere">{words}</span>
    </span>
  );
}
