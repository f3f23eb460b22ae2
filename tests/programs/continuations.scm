; SPDX-License-Identifier: MIT
; Full continuations that are taken in the midst of a C function's callbacks, and entered again when
; that function has returned long ago: Guile copies the C stack away, and back.
(define count 0)
(define saved '())
(define out '())
(define table (make-hash-table))
(for-each (lambda (i) (hash-set! table i (* i i))) '(1 2 3 4 5))

(define (deep n function) (if (= n 0) (function) (+ 1 (deep (- n 1) function))))

(let ((times 0))
  (hash-for-each
   (lambda (key value)
     (call/cc (lambda (again) (set! saved (cons again saved))))
     (set! out (cons (+ key value) out)))
   table)
  (set! count (+ count 1))
  (let ((sum (deep 50 (lambda () (length (sort (iota 200) (lambda (a b) (> a b))))))))
    (format #t "~a: ~a of ~a, ~a~%" count (apply + out) (length out) sum))
  (set! times (+ times 1))
  (if (< count 40) ((list-ref saved (modulo count (length saved))) #f)))

(let ((again #f) (round 0))
  (let ((got (call/cc (lambda (k) (set! again k) 0))))
    (set! round (+ round 1))
    (if (< round 100) (again (+ got round)) (format #t "~a~%" got))))
(format #t "~a~%" (catch 'foo (lambda () (deep 20 (lambda () (throw 'foo 1 2)))) (lambda words words)))
(exit 5)
