// web/src/task/output.tsx: the output of a command: the last lines, more on request, and never more than a limit.
import { useState } from 'react';
import type { ReactNode } from 'react';
import { clean } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';

const FEW = 8;
const MANY = 400;

export function Output({ text, few = FEW, label }: { text: string; few?: number; label: string }): ReactNode {
  const [all, setAll] = useState(false);
  const lines = clean(text).trimEnd().split('\n');
  if (lines.length === 1 && lines[0] === '') return null;
  const shown = lines.slice(-(all ? MANY : few));
  const left = lines.length - shown.length;
  return (
    <div className="mt-1 rounded-md border border-line bg-panel">
      {left > 0 || all ? (
        <div className="border-b border-line px-2 py-0.5">
          <Button look="quiet" size="small" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? 'Show only the end' : `Show ${left} more ${left === 1 ? 'line' : 'lines'}`}
          </Button>
          {all && left > 0 ? <span className="text-xs text-muted">{left} earlier lines are in the logs</span> : null}
        </div>
      ) : null}
      <pre
        tabIndex={0}
        role="group"
        aria-label={label}
        className="max-h-96 overflow-auto px-3 py-2 font-mono text-sm whitespace-pre-wrap wrap-anywhere"
      >
        {shown.join('\n')}
      </pre>
    </div>
  );
}
