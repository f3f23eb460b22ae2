/* SPDX-License-Identifier: MIT */
/*
 * A writer, signals nested in it, the host side that drains, and a reader that only looks: the
 * hand-over of words and sub-buffers as arch/x86_64/hot.S, core/record/stream.c and attach/ring/drain.c
 * do it. Checked by spin (tests/checks/test_model.py).
 *
 * What is modelled: one thread. Level 0 is its ordinary code, each further level a signal handler
 * that may begin between any two steps of the level below, unless the slow half has masked signals.
 * Each level makes calls; a call is a record. Sub-buffers lie side by side: HEADER places, then
 * WORDS words. The host takes FULL ones, waits a while for holes, keeps one with a hole out of use
 * (quarantine) until the word is there, zeroes and frees. The reader copies a sub-buffer place by
 * place and throws the copy away if the state word changed. With OVERWRITE there is no draining
 * host: the writer takes its own oldest sub-buffer back.
 *
 * What is claimed:
 *  - each store goes to a word that is zero, of a sub-buffer that is not free, never to a header;
 *  - every record is delivered once, or counted as lost (overrun);
 *  - a copy that the reader keeps has no word of another use of that memory.
 *
 * COMPARE_WITH_END is how it was once: the place is compared with the end that the block names by
 * then. It fails, which shows that the model can.
 */
#ifndef LEVELS
#define LEVELS 3
#endif
#ifndef CALLS
#define CALLS 2 /* of level 0; each other level makes as many */
#endif
#define SUBS   3
#define HEADER 3 /* as many places are told apart as levels can be behind the end: 32 in the code */
#define WORDS  2
#define SIZE   5
#define TOTAL  (LEVELS * CALLS)

/* Sub-buffer s begins at (s + 1) * SIZE: 0 is no place. */
#define SUB(p)	  ((p) / SIZE - 1)
#define INSIDE(p) ((p) % SIZE >= HEADER)
#define FIRST(s)  (((s) + 1) * SIZE + HEADER)
#define BEHIND(s) (((s) + 2) * SIZE)
#define NONE	  255

mtype = { FREE, ACTIVE, FULL, READING };

mtype state[SUBS];
byte sequence[SUBS];	     /* with the state, in the code's one state word */
byte used[SUBS];
byte header[SUBS];	     /* the sequence that the header states */
byte memory[(SUBS + 2) * SIZE]; /* 0 = not written, else the record's number */
byte stamp[(SUBS + 2) * SIZE];	/* sequence that the store was meant for: for the claims only */

/* The thread's block */
byte cur, limit;
byte open = NONE; /* the open sub-buffer */
byte opened = 1;  /* sub-buffers so far */
bool armed;	  /* the stop word says: the straight line may write */
bool masked;	  /* signals */
byte running;	  /* process of the level that runs */

/* For the claims */
byte delivered[TOTAL + 1];
byte lost, made;
bool finished;
#ifdef OVERWRITE
byte overrun;
#endif

inline store(place, number)
{
	d_step {
		assert(place >= SIZE && INSIDE(place) && SUB(place) < SUBS);
		assert(state[SUB(place)] != FREE);
		assert(memory[place] == 0);
		memory[place] = number;
		stamp[place] = sequence[SUB(place)]
	}
}

inline close_open()
{
	if
	:: open != NONE ->
		used[open] = ((cur < BEHIND(open) -> cur : BEHIND(open)) - FIRST(open));
		state[open] = FULL;
		open = NONE; cur = 0; limit = 0;
	:: else
	fi
}

/* Sets `open` to a sub-buffer that is ACTIVE and zero, if one is to be had. */
inline take_sub_buffer()
{
	d_step {
		s = 0;
		do
		:: s < SUBS && state[s] != FREE -> s++
		:: else -> break
		od
	}
#ifdef OVERWRITE
	if
	:: s == SUBS -> d_step {
		/* its own oldest without a hole */
		s = NONE; i = 0;
		do
		:: i < SUBS ->
			if
			:: state[i] == FULL && (s == NONE || sequence[i] < sequence[s]) ->
				j = 0;
				do
				:: j < used[i] && memory[FIRST(i) + j] != 0 -> j++
				:: else -> break
				od;
				if
				:: j == used[i] -> s = i
				:: else
				fi
			:: else
			fi;
			i++
		:: else -> break
		od
	}
	:: else
	fi;
	if
	:: s == NONE -> s = SUBS
	:: s < SUBS && state[s] == FULL ->
		/* the state word changes first, then the words are zeroed */
		d_step { state[s] = ACTIVE; sequence[s] = opened; overrun = overrun + used[s]; i = 0 }
		do
		:: i < WORDS -> d_step { memory[FIRST(s) + i] = 0; stamp[FIRST(s) + i] = 0; i++ }
		:: else -> break
		od
	:: else
	fi
#endif
}

/* The slow half: signals are masked for its length (the call that masks is a step of its own). */
inline slow(number)
{
	masked = true;
	if
	:: open == NONE || cur >= BEHIND(open) ->
		close_open();
		take_sub_buffer();
		if
		:: s < SUBS ->
			header[s] = opened; used[s] = 0;
			open = s; cur = FIRST(s); limit = BEHIND(s);
			d_step { state[s] = ACTIVE; sequence[s] = opened; opened++; }
		:: else
		fi
	:: else
	fi;
	if
	:: open != NONE -> p = cur; cur++; store(p, number)
	:: else -> lost++
	fi;
	/* settle */
	if
	:: open == NONE -> cur = 0; armed = false
	:: else -> armed = true
	fi;
	masked = false
}

/* One call: the steps between which a signal may come. */
inline call(number)
{
	if
	:: !armed -> slow(number)
	:: else ->
		atomic { p = cur; cur++ } /* xadd */
#ifdef COMPARE_WITH_END
		if
		:: p < limit -> store(p, number)
#else
		if
		:: INSIDE(p) -> store(p, number)
#endif
		:: else -> slow(number)
		fi
	fi
}

proctype Level(byte level; byte below) provided (running == _pid)
{
	byte n, p, s, i, j;
	do
	:: n < CALLS ->
		atomic { n++; made++ }
		call(level * CALLS + n)
	:: else -> break
	od;
	if
	:: level == 0 ->
		/* the thread ends: what is open is closed */
		atomic { masked = true; close_open(); finished = true }
#ifdef OVERWRITE
		d_step {
			n = overrun + lost; s = 0;
			do
			:: s < SUBS -> n = n + (state[s] == FULL -> used[s] : 0); s++
			:: else -> break
			od;
			assert(n == made)
		}
#endif
	:: else ->
		/* the handler returns */
		atomic { p = 0; s = 0; i = 0; j = 0; n = 0; running = below }
	fi
}

/* Any signal at any moment. */
active proctype Signals()
{
	byte next = 1, level;
end_without_signals:
	do
	:: atomic { next < LEVELS && !masked && running != 0 ->
		   level = run Level(next, running); running = level; level = 0; next++ }
	od
}

#ifndef OVERWRITE
/* Delivers what is there; a late word of a quarantined sub-buffer is counted as delivered then: in
 * the code it is lost to the recording, which no memory is corrupted by. */
inline deliver(sub)
{
	i = 0; hole = false;
	do
	:: i < used[sub] -> d_step {
		if
		:: memory[FIRST(sub) + i] != 0 ->
			delivered[memory[FIRST(sub) + i]]++;
			assert(stamp[FIRST(sub) + i] == sequence[sub])
		:: else -> hole = true
		fi;
		i++ }
	:: else -> break
	od
}

active proctype Host()
{
	byte s, i, n;
	bool hole;
	do
	:: s < SUBS && state[s] == FULL ->
		/* holes are waited for, or for as long as patience lasts */
		state[s] = READING;
		deliver(s);
		if
		:: hole ->
			/* quarantine: until every word is there; those that came late are taken now */
			n = 0;
			do
			:: n < used[s] && memory[FIRST(s) + n] != 0 -> n++
			:: n == used[s] -> break
			od;
			n = 0;
			d_step {
				i = 0;
				do
				:: i < used[s] ->
					if
					:: memory[FIRST(s) + i] != 0 && delivered[memory[FIRST(s) + i]] == 0 ->
						delivered[memory[FIRST(s) + i]]++
					:: else
					fi;
					i++
				:: else -> break
				od }
		:: else
		fi;
		/* zeroed, then freed */
		i = 0;
		do
		:: i < WORDS -> d_step { memory[FIRST(s) + i] = 0; stamp[FIRST(s) + i] = 0; i++ }
		:: else -> break
		od;
		state[s] = FREE; i = 0; hole = false; n = 0; s = 0
	:: s < SUBS && state[s] != FULL -> s++
	:: s == SUBS && !finished -> s = 0
	:: s == SUBS && finished ->
		/* once more, all of it */
		if
		:: state[0] == FULL || state[1] == FULL || state[2] == FULL -> s = 0
		:: else -> break
		fi
	od;
	n = 0;
	d_step {
		i = 1;
		do
		:: i <= TOTAL -> assert(delivered[i] <= 1); n = n + delivered[i]; i++
		:: else -> break
		od
	}
	assert(n + lost == made)
}
#endif

active proctype Reader()
{
	byte s, i, before, stated, copy[WORDS], meant[WORDS];
	mtype was;
	/* one look at any sub-buffer at any time, if it is ever in use */
	if
	:: s = 0
	:: s = 1
	:: s = 2
	fi;
end_unless_used:
	atomic { (state[s] == ACTIVE || state[s] == FULL) -> was = state[s]; before = sequence[s] }
	stated = header[s];
	do
	:: i < WORDS -> d_step { copy[i] = memory[FIRST(s) + i]; meant[i] = stamp[FIRST(s) + i]; i++ }
	:: else -> break
	od;
	atomic {
		if
		:: state[s] == was && sequence[s] == before && stated == before ->
			i = 0;
			do
			:: i < WORDS -> assert(copy[i] == 0 || meant[i] == before); i++
			:: else -> break
			od
		:: else
		fi
	}
}

init
{
	atomic {
		byte s;
		do
		:: s < SUBS -> state[s] = FREE; s++
		:: else -> break
		od;
		running = run Level(0, 0)
	}
}
