// web/src/review/new-branch.tsx: the name of a branch that the merge makes.
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/fields.tsx';

export function NewBranch({
  open,
  onClose,
  onName,
}: {
  open: boolean;
  onClose: () => void;
  onName: (name: string) => void;
}): ReactNode {
  const [name, setName] = useState('');
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Merge into a new branch"
      about="It begins where the task began. It is made when you merge."
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== '') onName(name.trim());
        }}
      >
        <TextField label="Name of the branch" value={name} onChange={setName} placeholder="review/dates" mono />
        <div className="flex justify-end">
          <Button type="submit" look="primary" disabled={name.trim() === ''}>
            Use this branch
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
