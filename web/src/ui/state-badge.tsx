// web/src/ui/state-badge.tsx: the state of a task as an icon, a word and a colour, never the colour alone.
import {
  Archive,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CircleMinus,
  CirclePlay,
  CircleStop,
  CircleX,
  Clock,
  GitMerge,
  Hammer,
  Unplug,
} from 'lucide-react';
import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';

type State = ApiTask['state'];

const STATES: Readonly<Record<State, { word: string; icon: LucideIcon; colour: string }>> = {
  queued: { word: 'Queued', icon: Clock, colour: 'text-muted' },
  preparing: { word: 'Preparing', icon: Hammer, colour: 'text-info' },
  running: { word: 'Running', icon: CirclePlay, colour: 'text-info' },
  'needs-you': { word: 'Needs you', icon: CircleAlert, colour: 'text-warn' },
  ready: { word: 'Ready', icon: CircleCheck, colour: 'text-ok' },
  'no-changes': { word: 'No changes', icon: CircleMinus, colour: 'text-muted' },
  failed: { word: 'Failed', icon: CircleX, colour: 'text-bad' },
  stopped: { word: 'Stopped', icon: CircleStop, colour: 'text-muted' },
  merged: { word: 'Merged', icon: GitMerge, colour: 'text-ok' },
  discarded: { word: 'Discarded', icon: Archive, colour: 'text-muted' },
  interrupted: { word: 'Interrupted', icon: Unplug, colour: 'text-warn' },
  damaged: { word: 'Damaged', icon: CircleDashed, colour: 'text-bad' },
};

export const stateWord = (state: State): string => STATES[state].word;

export function StateBadge({ state, pill = false }: { state: State; pill?: boolean }): ReactNode {
  const { word, icon: Icon, colour } = STATES[state];
  const ground =
    colour === 'text-ok'
      ? 'bg-ok-bg'
      : colour === 'text-bad'
        ? 'bg-bad-bg'
        : colour === 'text-warn'
          ? 'bg-warn-bg'
          : colour === 'text-info'
            ? 'bg-info-bg'
            : 'bg-raised';
  return (
    <span
      data-state={state}
      className={`inline-flex items-center gap-1.5 font-medium whitespace-nowrap ${colour} ${pill ? `h-6 rounded-full px-2 text-sm ${ground}` : ''}`}
    >
      <Icon size={16} aria-hidden className="shrink-0" />
      {word}
    </span>
  );
}
