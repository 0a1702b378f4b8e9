// web/src/ui/state-badge.tsx: the state of a task as an icon, a word and a colour, never the colour alone. The words are those of the
// command line.
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
import { STATE_WORDS, type ShownState } from '../../../src/protocol/run-state.ts';

const LOOKS: Readonly<Record<ShownState, { icon: LucideIcon; colour: string }>> = {
  queued: { icon: Clock, colour: 'text-muted' },
  preparing: { icon: Hammer, colour: 'text-info' },
  running: { icon: CirclePlay, colour: 'text-info' },
  'needs-you': { icon: CircleAlert, colour: 'text-warn' },
  ready: { icon: CircleCheck, colour: 'text-ok' },
  'no-changes': { icon: CircleMinus, colour: 'text-muted' },
  failed: { icon: CircleX, colour: 'text-bad' },
  stopped: { icon: CircleStop, colour: 'text-muted' },
  merged: { icon: GitMerge, colour: 'text-ok' },
  discarded: { icon: Archive, colour: 'text-muted' },
  interrupted: { icon: Unplug, colour: 'text-warn' },
  damaged: { icon: CircleDashed, colour: 'text-bad' },
};

/** As the beginning of a sentence. */
export function stateWord(state: ShownState): string {
  const word = STATE_WORDS[state];
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

export function StateBadge({ state, pill = false }: { state: ShownState; pill?: boolean }): ReactNode {
  const { icon: Icon, colour } = LOOKS[state];
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
      {stateWord(state)}
    </span>
  );
}
